#include "cli/checkpoint_command.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "base/testing/test_folder.h"
#include "checkpoint/model_snapshot.h"
#include "checkpoint/save_root.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace regatta::cli {
namespace {

using base::TestFolder;
using checkpoint::TestModel;

struct Result {
  int exit_code = 0;
  std::string out, err;
};

// As regatta's main does it: a wrong command line is 2.
Result Regatta(const std::string& command_line) {
  Result result;
  CLI::App app("regatta");
  app.require_subcommand(1);
  AddCheckpointCommand(app, result.exit_code);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse(command_line);
  } catch (const CLI::ParseError& error) {
    result.exit_code = app.exit(error) == 0 ? 0 : 2;
  }
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

class CheckpointCommand : public testing::Test {
 protected:
  void SetUp() override {
    model_.FillRandom(50, 1);
    auto root = checkpoint::SaveRoot::Open({folder_.path(), checkpoint::OpenMode::kFresh, 1, 0});
    ASSERT_TRUE(root.ok());
    checkpoint::RunState run;
    run.step = 10;
    ASSERT_TRUE((*root)->SaveEpoch(0, model_.store(), run).ok());
    checkpoint::SetRow(*model_.sparse[0], 7, {0x3F800000, 0x40000000});
    run.epoch = 1;
    run.step = 20;
    ASSERT_TRUE((*root)->SaveEpoch(1, model_.store(), run).ok());
    ASSERT_TRUE((*root)->MarkBest(0).ok());
  }
  Result On(const std::string& command, const std::string& rest = "") {
    return Regatta("checkpoint " + command + " " + folder_.path() + rest);
  }

  TestFolder folder_;
  TestModel model_{2};
};

TEST_F(CheckpointCommand, ListsSavesWithTheirMarks) {
  const Result text = On("ls");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(text.out, "complete, best\n")) << text.out;
  EXPECT_TRUE(absl::StrContains(text.out, "complete, current\n")) << text.out;
  const auto json = nlohmann::json::parse(On("ls", " --json").out);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["name"], "1");
  EXPECT_EQ(json[1]["rows"], 76);
  EXPECT_EQ(json[1]["current"], true);
  EXPECT_EQ(json[0]["best"], true);
}

TEST_F(CheckpointCommand, VerifyNamesTheDamage) {
  EXPECT_EQ(On("verify", " --all").exit_code, 0);
  std::string bytes = base::ReadFile(folder_ / "1/data-000").value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(base::WriteFileAtomically(folder_ / "1/data-000", bytes).ok());
  const Result result = On("verify");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(result.out, "1: DAMAGED")) << result.out;
  EXPECT_TRUE(absl::StrContains(result.out, "1/data-000: byte ")) << result.out;
  EXPECT_EQ(On("verify", "/0").exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(On("verify", " --all --json").out)[1]["whole"], false);
}

TEST_F(CheckpointCommand, DumpsAndGets) {
  const Result dump = On("dump", " --table embedding");
  EXPECT_EQ(dump.exit_code, 0);
  EXPECT_EQ(std::count(dump.out.begin(), dump.out.end(), '\n'), 51);
  const std::string row = "embedding\t7\t1\t2\t|\t0\t0\t0\t0\t0\t0\n";
  EXPECT_TRUE(absl::StrContains(dump.out, row));
  EXPECT_EQ(On("get", " --table embedding --key 7").out, row);
  EXPECT_EQ(nlohmann::json::parse(On("get", " --table embedding --key 7 --json").out)["w"], (std::vector<float>{1, 2}));
  const Result missing = On("get", " --table embedding --key 8");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(missing.err, "no key 8")) << missing.err;
  EXPECT_TRUE(absl::StartsWith(On("get", " --dense fc.bias").out, "dense\tfc.bias[0]\t"));
  EXPECT_EQ(On("get", " --dense nothing").exit_code, 1);
  EXPECT_TRUE(absl::StrContains(On("get", " --table wid --key 1").err, "there are: embedding, wide"));
}

TEST_F(CheckpointCommand, DiffTellsByItsExitCode) {
  EXPECT_EQ(On("diff", "/0 " + folder_.path() + "/0").exit_code, 0);
  const Result result = On("diff", "/0 " + folder_.path());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(result.out, "embedding: 50 equal, 0 different, 0 only in A, 1 only in B"))
      << result.out;
}

TEST_F(CheckpointCommand, ExportsAndImports) {
  EXPECT_EQ(On("export", " " + folder_.path() + "/w.npz").exit_code, 0);
  const Result import = On("import", "/w.npz --like " + folder_.path() + " --out " + folder_.path() + "/copy");
  EXPECT_EQ(import.exit_code, 0) << import.err;
  EXPECT_EQ(On("diff", " " + folder_.path() + "/copy").exit_code, 0);
}

TEST_F(CheckpointCommand, AWrongCommandLineIsTwoAndAMissingSaveIsOne) {
  EXPECT_EQ(Regatta("checkpoint").exit_code, 2);
  EXPECT_EQ(Regatta("checkpoint ls").exit_code, 2);
  EXPECT_EQ(On("get").exit_code, 2);
  EXPECT_EQ(On("get", " --table embedding").exit_code, 2);
  EXPECT_EQ(On("get", " --table embedding --key seven").exit_code, 2);
  EXPECT_EQ(On("dump", " --frobnicate").exit_code, 2);
  for (const char* command : {"ls", "verify", "dump", "get --dense x"}) {
    const Result result = Regatta(std::string("checkpoint ") + command + " /no/such/folder");
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_TRUE(absl::StrContains(result.err, "/no/such/folder does not exist")) << result.err;
  }
}

TEST_F(CheckpointCommand, AFolderOfSavesUnderOtherNamesListsThem) {
  const Result saved = Regatta("checkpoint ls " + folder_.path() + "/1");
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  TestFolder other;
  for (const char* name : {"epoch_0", "epoch_1"})
    std::filesystem::copy(folder_.path() + "/1", other / name, std::filesystem::copy_options::recursive);
  const Result result = Regatta("checkpoint ls " + other.path());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(
      absl::StrContains(result.err, "name one of the saves in it: " + (other / "epoch_0") + ", " + (other / "epoch_1")))
      << result.err;
}

TEST_F(CheckpointCommand, HelpTeachesWithExamples) {
  for (const char* command : {"ls", "verify", "dump", "get", "diff", "export", "import"}) {
    const Result result = Regatta(std::string("checkpoint ") + command + " --help");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(absl::StrContains(result.out, std::string("regatta checkpoint ") + command)) << result.out;
  }
}

// A whole save in two parts, and the changes since it as a second one.
TEST(CheckpointCommandOnParts, ShowsTheWholeThatTheyMake) {
  TestFolder folder;
  TestModel model(2), whole(2);
  model.FillRandom(50, 1);
  whole.FillRandom(50, 1);
  for (const auto& table : model.sparse) table->TrackChanges(table::Tracking::kOn);
  const auto save = [&](const std::string& name, const std::string& since) {
    for (uint32_t server = 0; server < 2; ++server) {
      checkpoint::SnapshotOptions options;
      options.part = checkpoint::SavePart{name, server, 2, {512 * server, 512 * (server + 1)}, {}};
      if (!since.empty())
        options.base = checkpoint::BaseAt(folder / since + "/" + checkpoint::PartName(server)).value();
      auto snapshot = checkpoint::ModelSnapshot::Begin(model.tables(), options).value();
      checkpoint::SaveContents contents = snapshot->Contents().value();
      // One table holds all dense elements here: the second server saves the end of them.
      const size_t half = contents.dense->arrays[0].size() / 2;
      for (auto& array : contents.dense->arrays) array = server == 0 ? array.first(half) : array.subspan(half);
      contents.part->dense = server == 0 ? checkpoint::PartRange{0, half}
                                         : checkpoint::PartRange{half, half + contents.dense->arrays[0].size()};
      ASSERT_EQ(checkpoint::WriteCheckpoint(folder / name + "/" + checkpoint::PartName(server), contents),
                absl::OkStatus());
      // Both parts come from one table, so that its changes are only forgotten with the last.
      if (server == 1 && since.empty()) {
        for (const auto& table : model.sparse)
          for (uint32_t shard = 0; shard < 512; ++shard)
            ASSERT_TRUE(
                table->ForEachSnapshotRow(shard, table::Which::kAll, [](base::Key, std::span<const float>) {}).ok());
        ASSERT_EQ(snapshot->Complete(), absl::OkStatus());
      }
    }
  };
  save("1", "");
  for (TestModel* m : {&model, &whole}) checkpoint::SetRow(*m->sparse[0], 7, {0x3F800000, 0x40000000});
  save("2", "1");
  ASSERT_TRUE(checkpoint::WriteCheckpoint(folder / "whole", whole.view(), {}).ok());

  const auto on = [&](const std::string& command, const std::string& name, const std::string& rest = "") {
    return Regatta("checkpoint " + command + " " + folder / name + rest);
  };
  const Result ls = on("ls", "2");
  EXPECT_TRUE(absl::StrContains(ls.out, "complete, changes since 1, in 2 parts")) << ls.out << ls.err;
  EXPECT_EQ(on("verify", "2").exit_code, 0);
  EXPECT_EQ(on("dump", "2").out, on("dump", "whole").out);
  EXPECT_EQ(on("get", "2", " --table embedding --key 7").out, on("get", "whole", " --table embedding --key 7").out);
  EXPECT_EQ(on("diff", "2", " " + folder / "whole").exit_code, 0);
  EXPECT_EQ(on("diff", "1", " " + folder / "whole").exit_code, 1);
  // A part alone is whole in itself, but no model.
  EXPECT_EQ(on("verify", "2/part-001").exit_code, 0);
  const Result dump = on("dump", "2/part-001");
  EXPECT_EQ(dump.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(dump.err, "holds part 1 of 2")) << dump.err;
  std::filesystem::remove_all(folder / "1");
  const Result broken = on("verify", "2");
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(broken.out, folder / "1/part-000")) << broken.out;
}

}  // namespace
}  // namespace regatta::cli
