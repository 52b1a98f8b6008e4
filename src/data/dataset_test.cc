#include "data/dataset.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "data/dataset_factory.h"
#include "data/slot_key.h"
#include "data/text_writer.h"

namespace regatta::data {
namespace {

class DatasetTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/dataset.XXXXXX";
    folder_ = mkdtemp(name.data());
    options_.schema.sparse_slots = {"1", "2"};
    options_.schema.dense_slot = "d";
    options_.schema.dense_dim = 1;
    options_.batch_size = 7;
    options_.format = "slot_text";
    // Small, so that a small file has many blocks and pieces.
    options_.block_bytes = 100;
    options_.piece_bytes = 333;
  }
  void TearDown() override { EXPECT_TRUE(base::RemoveTree(folder_).ok()); }

  std::string Line(uint64_t i) {
    std::string line = absl::StrCat("click:", i % 2, " d:", i, ".25 1:", i, " 2:", i * i);
    for (uint64_t k = 0; k < base::RandomBits(3, i) % 3; ++k) absl::StrAppend(&line, " 2:", k);
    return line;
  }
  std::string Lines(uint64_t begin, uint64_t end) {
    std::string text;
    for (uint64_t i = begin; i < end; ++i) absl::StrAppend(&text, Line(i), "\n");
    return text;
  }
  std::string Add(const std::string& name, const std::string& text, Compression compression = Compression::kNone) {
    const std::string path = folder_ + "/" + name;
    auto writer = TextWriter::Create(path, compression).value();
    EXPECT_TRUE(writer->Write(text).ok());
    EXPECT_TRUE(writer->Close().ok());
    options_.files.push_back(path);
    return path;
  }
  // Three files of 500 lines, one of them compressed, and an empty one.
  void AddFiles() {
    Add("a", Lines(0, 123));
    Add("b.gz", Lines(123, 300), Compression::kGzip);
    Add("empty", "");
    Add("c", Lines(300, 500));
  }

  struct Pass {
    std::vector<Batch> batches;
    absl::Status status;
  };
  Pass ReadPass(Dataset& dataset, const base::DataPosition& done = {}) {
    Pass pass;
    pass.status = dataset.BeginPass(done);
    while (pass.status.ok()) {
      auto batch = dataset.Next();
      if (!batch.ok()) pass.status = batch.status();
      if (!batch.ok() || *batch == nullptr) break;
      pass.batches.push_back(**batch);
      dataset.Recycle(*std::move(batch));
    }
    const absl::Status end = dataset.EndPass();
    if (pass.status.ok()) pass.status = end;
    return pass;
  }
  Pass ReadPass() {
    auto dataset = MakeDataset(options_);
    if (!dataset.ok()) return {{}, dataset.status()};
    return ReadPass(**dataset);
  }

  std::string folder_;
  DatasetOptions options_;
};

void ExpectSame(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.pass, b.pass);
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.size, b.size);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.dense, b.dense);
  EXPECT_EQ(a.labels, b.labels);
}

std::vector<uint64_t> FirstKeys(const std::vector<Batch>& batches) {
  std::vector<uint64_t> keys;
  for (const Batch& batch : batches)
    for (int i = 0; i < batch.size; ++i)
      keys.push_back(batch.keys[batch.offsets[static_cast<size_t>(i * batch.slots)]]);
  return keys;
}

TEST_F(DatasetTest, WithIdSpaceSlotEverySlotHasKeysOfItsOwn) {
  Add("a", "click:1 d:1 1:5 2:5 2:6\nclick:0 d:2 2:5\n");
  options_.schema.user_slot = "2";
  for (const DatasetKind kind : {DatasetKind::kQueue, DatasetKind::kInMemory}) {
    options_.kind = kind;
    options_.schema.id_space = base::IdSpace::kShared;
    EXPECT_EQ(ReadPass().batches.at(0).keys, (std::vector<base::Key>{5, 5, 6, 5}));
    options_.schema.id_space = base::IdSpace::kSlot;
    const Pass pass = ReadPass();
    ASSERT_TRUE(pass.status.ok()) << pass.status;
    // docs/format/input.md gives the formula.
    const auto key = [](uint64_t id, const char* slot) { return base::Mix64(id ^ base::HashBytes(slot, 0)); };
    EXPECT_EQ(pass.batches.at(0).keys, (std::vector<base::Key>{key(5, "1"), key(5, "2"), key(6, "2"), key(5, "2")}));
    EXPECT_EQ(pass.batches[0].users, (std::vector<uint64_t>{5, 5}));
    EXPECT_EQ(IdOfSlotKey(SlotSalt("2"), key(6, "2")), 6u);
    EXPECT_EQ(IdOfSlotKey(SlotSalt("2"), key(~uint64_t{0}, "2")), ~uint64_t{0});
  }
}

// Whatever order the samples come in, their labels come with them.
TEST_F(DatasetTest, SeveralLabelsStayWithTheirSample) {
  std::string text;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&text, "click:", i % 2, " price:", i * 3, ".5 d:0 1:", i, "\n");
  Add("a", text);
  options_.schema.labels = {"click", "price"};
  options_.schema.real_labels = {"price"};
  for (const auto& [kind, shuffle] :
       {std::pair{DatasetKind::kQueue, Shuffle::kNone}, {DatasetKind::kInMemory, Shuffle::kLocal}}) {
    options_.kind = kind;
    options_.shuffle = shuffle;
    for (const LabelUse use : {LabelUse::kRead, LabelUse::kAbsent}) {
      options_.schema.label_use = use;
      const Pass pass = ReadPass();
      ASSERT_TRUE(pass.status.ok()) << pass.status;
      size_t samples = 0;
      for (const Batch& batch : pass.batches) {
        EXPECT_EQ(batch.label_dim, use == LabelUse::kRead ? 2 : 0);
        ASSERT_EQ(batch.labels.size(), static_cast<size_t>(batch.size * batch.label_dim));
        samples += static_cast<size_t>(batch.size);
        for (size_t s = 0; s < batch.labels.size() / 2; ++s) {
          const uint64_t id = batch.keys[batch.offsets[2 * s]];
          EXPECT_EQ(batch.labels[2 * s], static_cast<float>(id % 2));
          EXPECT_EQ(batch.labels[2 * s + 1], static_cast<float>(id) * 3 + 0.5f);
        }
      }
      EXPECT_EQ(samples, 200u);
    }
  }
}

TEST_F(DatasetTest, DataWithoutADeclaredSlotIsAnErrorThatNamesBothSides) {
  Add("a", "click:1 d:1 C1:5 C2:6\nclick:0 d:2 C1:5 C3:7\n");
  for (const DatasetKind kind : {DatasetKind::kQueue, DatasetKind::kInMemory}) {
    options_.kind = kind;
    const Pass pass = ReadPass();
    EXPECT_TRUE(pass.batches.empty());
    EXPECT_EQ(pass.status.code(), absl::StatusCode::kInvalidArgument);
    const std::string message(pass.status.message());
    for (const char* words : {"no declared sparse slot occurs in lines 1 to 2 of ", "/a", "declared are 1, 2;",
                              "the lines have the slots C1, C2, C3", "--sparse"})
      EXPECT_NE(message.find(words), std::string::npos) << message;
  }
}

TEST_F(DatasetTest, SlotsOfSlotReaderAreNamedAsTheFileDoes) {
  Add("a", "1:1 5:C1 3.5:d\n0:1 6:C1 4:d\n");
  options_.format = "slot_reader";
  const std::string message(ReadPass().status.message());
  EXPECT_NE(message.find("declared are 2, 3; the lines have the slots C1."), std::string::npos) << message;
}

TEST_F(DatasetTest, DataWithoutAnyIdIsAnErrorAtItsEnd) {
  Add("a", "click:1 d:1\nclick:0 d:2\n");
  EXPECT_NE(ReadPass().status.message().find("the lines have no ids"), std::string::npos);
  // Lines without ids are legal where others have some.
  Add("b", "click:1 d:1 1:5 2:6\n");
  EXPECT_TRUE(ReadPass().status.ok());
}

TEST_F(DatasetTest, SlotsThatNeverOccurAreWarnedOfOnce) {
  Add("a", "click:1 d:1 2:5\nclick:0 d:2 2:6\n");
  auto dataset = MakeDataset(options_).value();
  for (const bool first : {true, false}) {
    testing::internal::CaptureStderr();
    const Pass pass = ReadPass(*dataset);
    const std::string logged = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(pass.status.ok());
    EXPECT_EQ(pass.batches.size(), 1u);
    EXPECT_EQ(logged.find("1 of 2 sparse slots hold no id in the 2 samples of") != std::string::npos, first) << logged;
    EXPECT_EQ(logged.find("/a: 1. Check their names") != std::string::npos, first) << logged;
  }
}

TEST_F(DatasetTest, BatchesFollowTheLinesAcrossFiles) {
  AddFiles();
  const Pass pass = ReadPass();
  ASSERT_TRUE(pass.status.ok()) << pass.status;
  ASSERT_EQ(pass.batches.size(), 72u);
  EXPECT_EQ(pass.batches.back().size, 500 - 71 * 7) << "the short last batch is kept";
  uint64_t line = 0;
  for (size_t k = 0; k < pass.batches.size(); ++k) {
    const Batch& batch = pass.batches[k];
    EXPECT_EQ(batch.index, k);
    ASSERT_EQ(batch.offsets.size(), static_cast<size_t>(batch.size * 2 + 1));
    for (int i = 0; i < batch.size; ++i, ++line) {
      const uint32_t* offsets = &batch.offsets[static_cast<size_t>(2 * i)];
      std::vector<uint64_t> second = {line * line};
      for (uint64_t n = 0; n < base::RandomBits(3, line) % 3; ++n) second.push_back(n);
      EXPECT_EQ(std::vector<uint64_t>(&batch.keys[offsets[0]], &batch.keys[offsets[0]] + 1),
                std::vector<uint64_t>({line}));
      EXPECT_EQ(std::vector<uint64_t>(batch.keys.begin() + offsets[1], batch.keys.begin() + offsets[2]), second);
      EXPECT_EQ(batch.dense[static_cast<size_t>(i)], static_cast<float>(line) + 0.25f);
      EXPECT_EQ(batch.labels[static_cast<size_t>(i)], static_cast<float>(line % 2));
    }
  }
}

TEST_F(DatasetTest, BatchesAreTheSameForAnyNumberOfReaders) {
  AddFiles();
  for (const DatasetKind kind : {DatasetKind::kQueue, DatasetKind::kInMemory}) {
    options_.kind = kind;
    options_.shuffle = kind == DatasetKind::kInMemory ? Shuffle::kLocal : Shuffle::kNone;
    options_.readers = 1;
    const Pass one = ReadPass();
    ASSERT_TRUE(one.status.ok()) << one.status;
    for (int readers : {2, 4, 9}) {
      options_.readers = readers;
      const Pass many = ReadPass();
      ASSERT_EQ(many.batches.size(), one.batches.size());
      for (size_t i = 0; i < one.batches.size(); ++i) ExpectSame(one.batches[i], many.batches[i]);
    }
  }
}

TEST_F(DatasetTest, ResumesBehindWhatWasLearnt) {
  AddFiles();
  for (const DatasetKind kind : {DatasetKind::kQueue, DatasetKind::kInMemory}) {
    options_.kind = kind;
    auto dataset = MakeDataset(options_).value();
    const Pass whole = ReadPass(*dataset, {.pass = 3});
    base::DataPosition done{.pass = 3, .low = 10};
    done.Add(11);
    done.Add(13);
    const Pass rest = ReadPass(*dataset, done);
    ASSERT_EQ(rest.batches.size(), 72u - 12u);
    EXPECT_EQ(rest.batches[0].index, 10u);
    EXPECT_EQ(rest.batches[1].index, 12u);
    EXPECT_EQ(rest.batches[2].index, 14u);
    for (const Batch& batch : rest.batches) ExpectSame(batch, whole.batches[batch.index]);
  }
}

TEST_F(DatasetTest, ShufflesByThePassAndSeedOnly) {
  AddFiles();
  options_.kind = DatasetKind::kInMemory;
  options_.shuffle = Shuffle::kLocal;
  auto dataset = MakeDataset(options_).value();
  const auto first = FirstKeys(ReadPass(*dataset, {.pass = 0}).batches);
  const auto second = FirstKeys(ReadPass(*dataset, {.pass = 1}).batches);
  EXPECT_EQ(FirstKeys(ReadPass(*dataset, {.pass = 0}).batches), first);
  EXPECT_NE(first, second);
  std::set<uint64_t> distinct(first.begin(), first.end());
  EXPECT_EQ(distinct.size(), 500u);
  options_.seed = 99;
  EXPECT_NE(FirstKeys(ReadPass().batches), first);
}

TEST_F(DatasetTest, ConcurrentConsumersGetEveryBatchOnce) {
  AddFiles();
  for (const DatasetKind kind : {DatasetKind::kQueue, DatasetKind::kInMemory}) {
    options_.kind = kind;
    options_.readers = 4;
    auto dataset = MakeDataset(options_).value();
    for (uint64_t pass = 0; pass < 3; ++pass) {
      ASSERT_TRUE(dataset->BeginPass({.pass = pass}).ok());
      std::atomic<uint64_t> indices{0}, samples{0};
      std::vector<std::thread> consumers;
      for (int i = 0; i < 2; ++i)
        consumers.emplace_back([&] {
          while (true) {
            auto batch = dataset->Next();
            ASSERT_TRUE(batch.ok());
            if (*batch == nullptr) return;
            indices += (*batch)->index;
            samples += static_cast<uint64_t>((*batch)->size);
            dataset->progress();
            dataset->Recycle(*std::move(batch));
          }
        });
      for (std::thread& consumer : consumers) consumer.join();
      EXPECT_EQ(samples, 500u);
      EXPECT_EQ(indices, 71u * 72u / 2);
      EXPECT_EQ(*dataset->Next(), nullptr);
      EXPECT_TRUE(dataset->EndPass().ok());
      EXPECT_EQ(dataset->progress().samples, 500u);
    }
  }
}

TEST_F(DatasetTest, AnAbortedPassEndsAndTheNextIsWhole) {
  for (int file = 0; file < 20; ++file) Add(absl::StrCat("f", file), Lines(0, 500));
  options_.readers = 4;
  options_.buffer_bytes = 1000;
  auto dataset = MakeDataset(options_).value();
  for (int taken = 0; taken < 5; ++taken) {
    ASSERT_TRUE(dataset->BeginPass({}).ok());
    for (int i = 0; i < taken; ++i) ASSERT_NE(*dataset->Next(), nullptr);
    EXPECT_TRUE(dataset->EndPass().ok());
    EXPECT_EQ(*dataset->Next(), nullptr);
  }
  EXPECT_EQ(FirstKeys(ReadPass(*dataset).batches).size(), 10'000u);
}

TEST_F(DatasetTest, ReportsProgressInBytesOfTheFiles) {
  AddFiles();
  auto dataset = MakeDataset(options_).value();
  const Pass pass = ReadPass(*dataset);
  const Progress progress = dataset->progress();
  EXPECT_EQ(progress.bytes_done, progress.bytes_total);
  uint64_t bytes = 0;
  for (const Batch& batch : pass.batches) bytes += batch.bytes;
  EXPECT_EQ(bytes, progress.bytes_total);
  EXPECT_GT(progress.parse_seconds, 0);
  EXPECT_GT(progress.read_seconds, 0);
}

TEST_F(DatasetTest, BadLinesAreSkippedCountedAndKept) {
  const std::string path = Add("bad", Lines(0, 50) + "garbage\n" + Lines(50, 60) + "click:0 d:x\n" + Lines(60, 70));
  options_.quarantine_path = folder_ + "/kept/quarantine.txt";
  for (int readers : {1, 3}) {
    options_.readers = readers;
    auto dataset = MakeDataset(options_).value();
    const Pass pass = ReadPass(*dataset);
    ASSERT_TRUE(pass.status.ok()) << pass.status;
    EXPECT_EQ(FirstKeys(pass.batches).size(), 70u);
    EXPECT_EQ(dataset->progress().bad_lines, 2u);
    EXPECT_EQ(base::ReadFile(options_.quarantine_path).value(),
              path + ":51: expected slot:value, found 'garbage'\tgarbage\n" + path +
                  ":62: slot 'd': expected a finite number, found 'x'\tclick:0 d:x\n");
  }
}

TEST_F(DatasetTest, AnInterruptEndsTheWaitForACommandThatHangs) {
  AddFiles();
  options_.pipe_command = "sleep 1000";
  options_.pipe_timeout_seconds = 1000;
  for (const DatasetKind kind : {DatasetKind::kQueue, DatasetKind::kInMemory}) {
    options_.kind = kind;
    auto dataset = MakeDataset(options_).value();
    std::atomic<bool> over{false};
    std::thread reader([&] {
      const absl::Status begun = dataset->BeginPass({});
      if (kind == DatasetKind::kInMemory) {
        EXPECT_EQ(begun.code(), absl::StatusCode::kCancelled) << begun;
      } else {
        EXPECT_EQ(dataset->Next().value(), nullptr);
      }
      over = true;
    });
    while (!over) {
      dataset->Interrupt();  // it may come before the pass has begun
      std::this_thread::yield();
    }
    reader.join();
    EXPECT_TRUE(dataset->EndPass().ok());
  }
}

TEST_F(DatasetTest, TheQuarantineIsCapped) {
  std::string text;
  for (int i = 0; i < 90; ++i) text += "garbage\n";
  Add("bad", text + Lines(0, 10));
  options_.quarantine_path = folder_ + "/quarantine.txt";
  options_.quarantine_max_bytes = 1000;
  ASSERT_TRUE(ReadPass().status.ok());
  EXPECT_LE(base::ReadFile(options_.quarantine_path).value().size(), 1000u);
}

TEST_F(DatasetTest, TooManyBadLinesEndThePass) {
  std::string garbage;
  for (int i = 0; i < 101; ++i) garbage += "garbage\n";
  const std::string path = Add("bad", Lines(0, 5) + garbage + Lines(5, 20));
  Pass pass = ReadPass();
  EXPECT_EQ(pass.status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(pass.status.message());
  EXPECT_NE(message.find("101 of "), std::string::npos) << message;
  EXPECT_NE(message.find("the 100 (1%, at least 100) that max_bad_lines allows"), std::string::npos) << message;
  EXPECT_NE(message.find(path + ":6: expected slot:value, found 'garbage'"), std::string::npos) << message;
  options_.max_bad_lines = 101;
  EXPECT_TRUE(ReadPass().status.ok());
  options_.max_bad_lines = 3;
  EXPECT_FALSE(ReadPass().status.ok());
}

TEST_F(DatasetTest, ALineOf10MegabytesIsOneBadLine) {
  options_.block_bytes = 256 << 10;
  options_.piece_bytes = 2 << 20;
  const std::string path =
      Add("long", Lines(0, 3) + "click:1 d:1 1:" + std::string(10'000'000, '1') + "\n" + Lines(3, 9));
  options_.quarantine_path = folder_ + "/q";
  auto dataset = MakeDataset(options_).value();
  const Pass pass = ReadPass(*dataset);
  ASSERT_TRUE(pass.status.ok()) << pass.status;
  EXPECT_EQ(FirstKeys(pass.batches), std::vector<uint64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(dataset->progress().bad_lines, 1u);
  EXPECT_EQ(base::ReadFile(options_.quarantine_path).value(),
            path + ":4: expected a line of at most 8388608 bytes, found 10000014\t\n");
}

TEST_F(DatasetTest, APassWithoutAGoodSampleIsAnError) {
  const std::string path = Add("bad", "one\ntwo\nthree\nfour\n");
  for (const DatasetKind kind : {DatasetKind::kQueue, DatasetKind::kInMemory}) {
    options_.kind = kind;
    const std::string message(ReadPass().status.message());
    EXPECT_EQ(message, "no good sample in 4 lines of " + path + "; the first reasons:\n  " + path +
                           ":1: expected slot:value, found 'one'\n  " + path +
                           ":2: expected slot:value, found 'two'\n  " + path +
                           ":3: expected slot:value, found 'three'");
  }
}

TEST_F(DatasetTest, AnEmptyFileAloneIsAnErrorAndAMissingOneIsNamed) {
  const std::string path = Add("empty", "");
  EXPECT_EQ(ReadPass().status.message(), "no good sample: " + path + " holds no line");
  options_.files.push_back("/nowhere/x");
  EXPECT_EQ(ReadPass().status.message(), "cannot open /nowhere/x: No such file or directory");
  auto dataset = MakeDataset(options_).value();
  EXPECT_FALSE(dataset->BeginPass({}).ok());
  EXPECT_EQ(*dataset->Next(), nullptr) << "a pass that did not begin is at its end";
}

TEST_F(DatasetTest, BinaryGarbageIsBadLines) {
  std::string garbage;
  for (int i = 0; i < 100'000; ++i) garbage += static_cast<char>(base::RandomBits(1, static_cast<uint64_t>(i)));
  Add("garbage", garbage);
  const Pass pass = ReadPass();
  EXPECT_EQ(pass.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(pass.batches.empty());
}

TEST_F(DatasetTest, ATruncatedGzipEndsThePassAfterItsGoodPart) {
  const std::string path = Add("x.gz", Lines(0, 2000), Compression::kGzip);
  const std::string bytes = base::ReadFile(path).value();
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  const Pass pass = ReadPass();
  EXPECT_EQ(pass.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(std::string(pass.status.message()).find(path + ": unreadable gzip at byte "), std::string::npos);
  EXPECT_FALSE(pass.batches.empty());
}

TEST_F(DatasetTest, DetectsTheFormatAndRefusesWhatCannotBe) {
  Add("empty", "");
  Add("multislot", "1 1 1 5 0 1 0.5\n");
  options_.format = "reader";
  EXPECT_EQ(FirstKeys(ReadPass().batches), std::vector<uint64_t>({5}));
  options_.format = "slot_text";
  EXPECT_FALSE(ReadPass().status.ok());
  options_.batch_size = 0;
  EXPECT_FALSE(MakeDataset(options_).ok());
  options_.batch_size = 2'000'000'000;
  EXPECT_FALSE(MakeDataset(options_).ok());
  options_.batch_size = 1;
  options_.shuffle = Shuffle::kLocal;
  EXPECT_FALSE(MakeDataset(options_).ok()) << "a queue cannot be shuffled";
}

}  // namespace
}  // namespace regatta::data
