#include "checkpoint/npz.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "base/testing/test_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/dump.h"
#include "checkpoint/model_difference.h"
#include "checkpoint/npz_model.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

// Runs Python with NumPy, the judge of what an .npz is; argv[1] is the folder.
bool Python(const base::TestFolder& folder, const std::string& program) {
  EXPECT_TRUE(
      base::WriteFileAtomically(folder / "program.py", "import numpy as np, sys\nd = sys.argv[1] + '/'\n" + program)
          .ok());
  return std::system(("/usr/bin/python3 " + (folder / "program.py") + " " + folder.path()).c_str()) == 0;
}
bool HasNumpy() { return std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0; }

CheckpointReader MustRead(const std::string& folder) { return CheckpointReader::Open(folder).value(); }

TEST(Npz, GivesTheModelBackBitByBit) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(500, 1);
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), RunState{}).ok());
  ASSERT_EQ(ExportNpz(MustRead(folder / "0"), folder / "w.npz"), absl::OkStatus());
  std::vector<std::string> notes;
  ASSERT_EQ(ImportNpz(folder / "w.npz", MustRead(folder / "0"), folder / "1", notes), absl::OkStatus());
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(base::FilesIn(folder / "0"), base::FilesIn(folder / "1"));
}

TEST(Npz, IsWhatNumpyReadsAndWrites) {
  if (!HasNumpy()) GTEST_SKIP() << "/usr/bin/python3 has no numpy (apt install python3-numpy)";
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(500, 2);
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), RunState{}).ok());
  ASSERT_TRUE(ExportNpz(MustRead(folder / "0"), folder / "w.npz").ok());
  ASSERT_TRUE(Python(folder, R"(
z = np.load(d + 'w.npz')
assert sorted(z.files) == sorted(['embedding.keys', 'embedding.w', 'embedding.state', 'wide.keys', 'wide.w',
  'dense.fc.weight', 'dense.fc.weight.state0', 'dense.fc.weight.state1', 'dense.fc.bias', 'dense.fc.bias.state0',
  'dense.fc.bias.state1', 'dense.scale', 'dense.scale.state0', 'dense.scale.state1', 'updates']), z.files
a = {k: z[k] for k in z.files}   # every CRC is checked here
assert a['embedding.keys'].dtype == np.uint64 and a['embedding.w'].shape == (500, 5)
assert a['embedding.state'].shape == (500, 12) and a['dense.fc.weight'].shape == (7, 3)
assert (np.diff(a['embedding.keys'].astype(object)) > 0).all()
assert a['updates'].shape == ()
# Another order of rows is the same model.
order = np.random.permutation(500)
for k in ('embedding.keys', 'embedding.w', 'embedding.state'): a[k] = a[k][order]
np.savez(d + 'stored.npz', **a)
np.savez_compressed(d + 'deflated.npz', **a)
)"));
  for (const char* name : {"stored", "deflated"}) {
    std::vector<std::string> notes;
    ASSERT_EQ(ImportNpz(folder / name + ".npz", MustRead(folder / "0"), folder / name, notes), absl::OkStatus());
    EXPECT_EQ(base::FilesIn(folder / "0"), base::FilesIn(folder / name)) << name;
  }
}

TEST(Npz, ImportSaysWhatIsMissingOrWrong) {
  if (!HasNumpy()) GTEST_SKIP() << "/usr/bin/python3 has no numpy (apt install python3-numpy)";
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(50, 3);
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), RunState{}).ok());
  ASSERT_TRUE(ExportNpz(MustRead(folder / "0"), folder / "w.npz").ok());
  ASSERT_TRUE(Python(folder, R"(
a = dict(np.load(d + 'w.npz'))
def save(name, **change):
  b = dict(a); b.update(change)
  np.savez(d + name, **{k: v for k, v in b.items() if v is not None})
save('no_w', **{'embedding.w': None})
save('no_keys', **{'wide.keys': None})
save('no_dense', **{'dense.fc.bias': None})
save('shape', **{'embedding.w': a['embedding.w'][:, :4].copy()})
save('rows', **{'embedding.w': a['embedding.w'][:49]})
save('dtype', **{'embedding.w': a['embedding.w'].astype(np.float64)})
save('dense_shape', **{'dense.fc.weight': a['dense.fc.weight'].T.copy()})
save('fortran', **{'embedding.w': np.asfortranarray(a['embedding.w'])})
save('twice', **{'wide.keys': np.full(25, 7, np.uint64)})
save('negative', **{'wide.keys': -np.arange(25)})
save('no_state', **{'embedding.state': None, 'dense.fc.bias.state1': None})
save('signed', **{'wide.keys': np.arange(25)})
)"));
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"no_w", "there is no array embedding.w"},
      {"no_keys", "there is no array wide.keys"},
      {"no_dense", "there is no array dense.fc.bias"},
      {"shape", "array embedding.w has shape [50,4]; want [50,5]"},
      {"rows", "array embedding.w has shape [49,5]; want [50,5]"},
      {"dtype", "array embedding.w has dtype <f8; want <f4"},
      {"dense_shape", "array dense.fc.weight has shape [3,7]; want [7,3]"},
      {"fortran", "array embedding.w: the array is in Fortran order"},
      {"twice", "array wide.keys: key 7 comes twice"},
      {"negative", "array wide.keys holds -1; keys are not negative"},
  };
  std::vector<std::string> notes;
  for (const auto& [name, want] : cases) {
    const absl::Status status = ImportNpz(folder / name + ".npz", MustRead(folder / "0"), folder / "out", notes);
    EXPECT_TRUE(absl::StrContains(status.message(), want)) << name << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), name)) << "the file is named: " << status;
    EXPECT_FALSE(base::Exists(folder / "out"));
  }
  ASSERT_EQ(ImportNpz(folder / "signed.npz", MustRead(folder / "0"), folder / "signed", notes), absl::OkStatus());
  EXPECT_TRUE(notes.empty());
  ASSERT_EQ(ImportNpz(folder / "no_state.npz", MustRead(folder / "0"), folder / "1", notes), absl::OkStatus());
  EXPECT_EQ(notes.size(), 3u);
  // The state of a new row under adam: m and v are 0, the powers are the betas.
  TestModel loaded;
  ASSERT_TRUE(MustRead(folder / "1").LoadInto(loaded.tables(), LoadKind::kTraining).ok());
  for (const auto& [key, bits] : BitsOf(*loaded.sparse[0])) {
    EXPECT_EQ(std::bit_cast<float>(bits[5]), 0.0f);
    EXPECT_EQ(std::bit_cast<float>(bits[15]), 0.9f);
    EXPECT_EQ(std::bit_cast<float>(bits[16]), 0.999f);
    break;
  }
  EXPECT_EQ(loaded.dense->updates(), 0u);
}

TEST(Npz, DamageIsFound) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(20, 4);
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), RunState{}).ok());
  ASSERT_TRUE(ExportNpz(MustRead(folder / "0"), folder / "w.npz").ok());
  const std::string bytes = base::ReadFile(folder / "w.npz").value();
  const auto whole = NpzReader::FromBytes(bytes);
  ASSERT_TRUE(whole.ok());
  for (size_t size = 0; size < bytes.size(); size += 61) {
    const auto npz = NpzReader::FromBytes(bytes.substr(0, size));
    EXPECT_FALSE(npz.ok()) << size;
  }
  // A flipped byte never gives other data: the array is refused, or (a timestamp, say) is as before.
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    const auto npz = NpzReader::FromBytes(damaged);
    if (!npz.ok()) continue;
    for (const std::string& name : whole->names()) {
      const auto array = npz->Read(name);
      if (array.ok()) {
        EXPECT_EQ(array->data, whole->Read(name)->data) << i;
      }
    }
  }
}

template <typename... T>
std::string Packed(T... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

// A zip of one member whose directory claims these sizes.
std::string Claiming(uint16_t method, const std::string& data, uint32_t compressed, uint32_t bytes) {
  const std::string name = "wide.keys.npy";
  const auto size = static_cast<uint16_t>(name.size());
  const std::string local =
      absl::StrCat("PK\x03\x04", Packed(uint16_t{20}, uint16_t{0}, method, uint32_t{0}, uint32_t{0}),
                   Packed(compressed, bytes, size, uint16_t{0}), name, data);
  const std::string directory =
      absl::StrCat("PK\x01\x02", Packed(uint32_t{0}, uint16_t{0}, method, uint32_t{0}, uint32_t{0}, compressed, bytes),
                   Packed(size, uint16_t{0}, uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, uint32_t{0}), name);
  return absl::StrCat(
      local, directory, "PK\x05\x06", Packed(uint32_t{0}, uint16_t{1}, uint16_t{1}),
      Packed(static_cast<uint32_t>(directory.size()), static_cast<uint32_t>(local.size()), uint16_t{0}));
}

// A file of two megabytes that says that it holds two gigabytes.
TEST(Npz, SizesThatAreOnlyClaimedAreRefused) {
  constexpr uint32_t kClaimed = 2'000'000'000;
  const std::string noise(2'200'000, '\xA5');
  for (const std::string& bytes : {Claiming(0, noise, kClaimed, kClaimed), Claiming(8, noise, kClaimed, kClaimed),
                                   Claiming(8, noise, static_cast<uint32_t>(noise.size()), kClaimed),
                                   Claiming(0, noise, static_cast<uint32_t>(noise.size()), kClaimed),
                                   Claiming(8, "", 0, kClaimed), Claiming(8, noise, UINT32_MAX - 1, 1)}) {
    const auto npz = NpzReader::FromBytes(bytes);
    ASSERT_TRUE(npz.ok()) << npz.status();
    EXPECT_TRUE(absl::IsDataLoss(npz->Read("wide.keys").status()));
    EXPECT_TRUE(absl::IsDataLoss(npz->Describe("wide.keys").status()));
  }
}

std::string DumpText(const CheckpointReader& save, const std::string& only = "") {
  std::string text;
  EXPECT_TRUE(DumpSave(save, only, [&](std::string_view s) {
                text += s;
                return absl::OkStatus();
              }).ok());
  return text;
}

TEST(Dump, IsSortedByTableAndKeyWithNineDigits) {
  base::TestFolder folder;
  TestModel model(2, {2, 3}, "sgd");
  SetRow(*model.sparse[0], 18446744073709551615u, {0x3F800000, 0x80000000});
  SetRow(*model.sparse[0], 7, {0x3DCCCCCD, 0xFF800000});
  SetRow(*model.sparse[1], 9, {0x00000001});
  ASSERT_TRUE(model.dense->Load(std::vector<float>{1, 2, 3, 4, 5, 6, .5, .25, .125, 8}, {}, 12).ok());
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), RunState{}).ok());
  EXPECT_EQ(DumpText(MustRead(folder / "0")),
            "embedding\t7\t0.100000001\t-inf\n"
            "embedding\t18446744073709551615\t1\t-0\n"
            "wide\t9\t1.40129846e-45\n"
            "dense\tfc.weight[0]\t1\t2\t3\n"
            "dense\tfc.weight[3]\t4\t5\t6\n"
            "dense\tfc.bias[0]\t0.5\t0.25\t0.125\n"
            "dense\tscale[0]\t8\n"
            "dense\tupdates\t12\n");
  EXPECT_EQ(DumpText(MustRead(folder / "0"), "wide"), "wide\t9\t1.40129846e-45\n");
  EXPECT_TRUE(absl::IsNotFound(DumpSave(MustRead(folder / "0"), "x", [](auto) { return absl::OkStatus(); })));
}

TEST(Dump, NamesAreShownWithoutTheirControlCharacters) {
  base::TestFolder folder;
  table::SparseTableConfig config;
  config.name = "t\x1b[2J\nwide\t9";
  config.dim = 1;
  config.rule.name = "sgd";
  const auto table = table::SparseTable::Create(config).value();
  SetRow(*table, 7, {0x3F800000});
  ModelView model;
  model.sparse = {table.get()};
  ASSERT_EQ(WriteCheckpoint(folder / "0", model, RunState{}), absl::OkStatus());
  EXPECT_EQ(DumpText(MustRead(folder / "0")), "t\\x1b[2J\\nwide\\t9\t7\t1\n");
}

TEST(Dump, StateFollowsABar) {
  base::TestFolder folder;
  TestModel model(1, {1}, "adam");
  SetRow(*model.sparse[0], 1, {0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40A00000});
  ASSERT_TRUE(WriteCheckpoint(folder / "0", model.view(), RunState{}).ok());
  EXPECT_EQ(DumpText(MustRead(folder / "0"), "embedding"), "embedding\t1\t1\t|\t2\t3\t4\t5\n");
}

TEST(CompareSaves, CountsWhatDiffers) {
  base::TestFolder folder;
  TestModel a(2, {2, 3}, "sgd"), b(2, {2, 3}, "sgd");
  for (uint64_t key = 0; key < 10; ++key) SetRow(*a.sparse[0], key, {0x3F800000, 0});
  for (uint64_t key = 2; key < 13; ++key) SetRow(*b.sparse[0], key, {key == 5 ? 0x40000000u : 0x3F800000u, 0});
  ASSERT_TRUE(a.dense->Load(std::vector<float>(10, 1), {}, 3).ok());
  std::vector<float> dense(10, 1);
  dense[4] = 1.5;
  ASSERT_TRUE(b.dense->Load(dense, {}, 3).ok());
  ASSERT_TRUE(WriteCheckpoint(folder / "a", a.view(), RunState{}).ok());
  ASSERT_TRUE(WriteCheckpoint(folder / "b", b.view(), RunState{}).ok());
  const std::vector<TableDifference> differences = CompareSaves(MustRead(folder / "a"), MustRead(folder / "b")).value();
  ASSERT_EQ(differences.size(), 5u);
  const TableDifference& d = differences[0];
  EXPECT_EQ(d.name, "embedding");
  EXPECT_EQ(d.equal, 7u);
  EXPECT_EQ(d.different, 1u);
  EXPECT_EQ(d.only_a, 2u);
  EXPECT_EQ(d.only_b, 3u);
  EXPECT_EQ(d.max_abs, 1.0);
  EXPECT_EQ(d.first,
            (std::vector<std::string>{"0 (only in A)", "1 (only in A)", "5", "10 (only in B)", "11 (only in B)"}));
  EXPECT_TRUE(differences[1].same());
  EXPECT_EQ(differences[2].name, "dense.fc.weight");
  EXPECT_EQ(differences[2].different, 1u);
  EXPECT_EQ(differences[2].first, (std::vector<std::string>{"value[4]"}));
  EXPECT_EQ(differences[2].max_abs, 0.5);
  const std::vector<TableDifference> same = CompareSaves(MustRead(folder / "a"), MustRead(folder / "a")).value();
  for (const TableDifference& table : same) EXPECT_TRUE(table.same());
}

}  // namespace
}  // namespace regatta::checkpoint
