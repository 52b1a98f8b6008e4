#include "checkpoint/save_root.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "base/failpoint.h"
#include "base/testing/test_folder.h"
#include "checkpoint/save_list.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

RunState At(uint64_t pass, uint64_t batch, EpochState state = EpochState::kRunning) {
  RunState run;
  run.epoch = pass;
  run.epoch_state = state;
  run.position = {pass, batch, 0};
  run.step = pass * 1000 + batch;
  return run;
}

std::unique_ptr<SaveRoot> MustOpen(const std::string& path, OpenMode mode, uint64_t keep = 0) {
  auto root = SaveRoot::Open({path, mode, 1, keep});
  EXPECT_EQ(root.status(), absl::OkStatus());
  return root.ok() ? *std::move(root) : nullptr;
}

absl::Status OpenStatus(const std::string& path, OpenMode mode) { return SaveRoot::Open({path, mode, 1, 0}).status(); }

void FlipByte(const std::string& path, size_t at) {
  std::string bytes = base::ReadFile(path).value();
  bytes[at % bytes.size()] ^= 1;
  ASSERT_TRUE(base::WriteFileAtomically(path, bytes).ok());
}

TEST(SaveRoot, ResumesTheNewestSave) {
  base::TestFolder folder;
  TestModel model;
  {
    auto root = MustOpen(folder / "out", OpenMode::kFresh);
    model.FillRandom(100, 1);
    ASSERT_TRUE(root->SaveEpoch(0, model.store(), At(0, 10, EpochState::kFinished)).ok());
    model.FillRandom(100, 2);
    ASSERT_TRUE(root->SaveCheckpoint(model.store(), At(1, 5)).ok());
  }
  auto root = MustOpen(folder / "out", OpenMode::kResume);
  TestModel loaded;
  const auto resumed = root->LoadNewest(loaded.store());
  ASSERT_EQ(resumed.status(), absl::OkStatus());
  ASSERT_TRUE(resumed->has_value());
  EXPECT_EQ((*resumed)->name, "checkpoint/1-5");
  EXPECT_EQ((*resumed)->run, At(1, 5));
  EXPECT_TRUE(loaded.SameBits(model));
}

TEST(SaveRoot, FallsBackToAnOlderSaveWhenTheNewestIsDamaged) {
  for (const char* file : {"data-000", "MANIFEST", "missing"}) {
    base::TestFolder folder;
    TestModel model, newer;
    model.FillRandom(100, 1);
    newer.FillRandom(100, 2);
    {
      auto root = MustOpen(folder.path(), OpenMode::kFresh);
      ASSERT_TRUE(root->SaveEpoch(0, model.store(), At(0, 10)).ok());
      ASSERT_TRUE(root->SaveEpoch(1, newer.store(), At(1, 10)).ok());
    }
    if (std::string(file) == "missing") {
      std::filesystem::remove_all(folder / "1");
    } else {
      FlipByte(folder / "1/" + file, 1000);
    }
    auto root = MustOpen(folder.path(), OpenMode::kResume);
    TestModel loaded;
    const auto resumed = root->LoadNewest(loaded.store());
    ASSERT_EQ(resumed.status(), absl::OkStatus());
    EXPECT_EQ((*resumed)->name, "0");
    EXPECT_TRUE(loaded.SameBits(model));
    // The run goes on from there, and the next resume finds it.
    ASSERT_TRUE(root->SaveEpoch(1, newer.store(), At(1, 10)).ok());
    EXPECT_EQ(root->saves(), (std::vector<std::string>{"1", "0"}));
  }
}

TEST(SaveRoot, NamesEverySaveWhenAllAreDamaged) {
  base::TestFolder folder;
  TestModel model;
  ASSERT_TRUE(MustOpen(folder.path(), OpenMode::kFresh)->SaveEpoch(0, model.store(), At(0, 10)).ok());
  FlipByte(folder / "0/data-000", 30);
  auto root = MustOpen(folder.path(), OpenMode::kResume);
  const auto resumed = root->LoadNewest(model.store());
  EXPECT_TRUE(absl::IsDataLoss(resumed.status()));
  EXPECT_TRUE(absl::StrContains(resumed.status().message(), "0/data-000: byte 16")) << resumed.status();
}

TEST(SaveRoot, FindsSavesWithoutAReadableCurrent) {
  base::TestFolder folder;
  TestModel model;
  {
    auto root = MustOpen(folder.path(), OpenMode::kFresh);
    ASSERT_TRUE(root->SaveEpoch(0, model.store(), At(0, 10)).ok());
    ASSERT_TRUE(root->SaveEpoch(1, model.store(), At(1, 10)).ok());
  }
  ASSERT_TRUE(base::WriteFileAtomically(folder / "CURRENT", "../../etc\n").ok());
  EXPECT_EQ((*MustOpen(folder.path(), OpenMode::kResume)->LoadNewest(model.store()))->name, "1");
}

TEST(SaveRoot, RefusesAFreshStartOnAnInterruptedRun) {
  base::TestFolder folder;
  TestModel model;
  { ASSERT_TRUE(MustOpen(folder.path(), OpenMode::kFresh)->SaveEpoch(0, model.store(), At(0, 10)).ok()); }
  const absl::Status status = OpenStatus(folder.path(), OpenMode::kFresh);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  for (const char* part : {"--resume", "--overwrite", "newest save 0", "interrupted"})
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  { ASSERT_TRUE(MustOpen(folder.path(), OpenMode::kResume)->MarkInterrupted().ok()); }
  EXPECT_EQ(OpenStatus(folder.path(), OpenMode::kFresh).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(OpenStatus(folder.path(), OpenMode::kOverwrite), absl::OkStatus());
}

TEST(SaveRoot, AFinishedRunIsReplacedEpochByEpoch) {
  base::TestFolder folder;
  TestModel old_model, new_model;
  old_model.FillRandom(10, 1);
  new_model.FillRandom(20, 2);
  {
    auto root = MustOpen(folder.path(), OpenMode::kFresh);
    for (uint64_t e = 0; e < 3; ++e) ASSERT_TRUE(root->SaveEpoch(e, old_model.store(), At(e, 10)).ok());
    ASSERT_TRUE(root->SaveCheckpoint(old_model.store(), At(2, 5)).ok());
    ASSERT_TRUE(root->MarkBest(2).ok());
    ASSERT_TRUE(root->MarkFinished().ok());
  }
  {
    auto root = MustOpen(folder.path(), OpenMode::kFresh);
    EXPECT_EQ(ResolveSave(folder.path()).value(), folder / "checkpoint/2-5");  // until the new run has a save
    ASSERT_TRUE(root->SaveEpoch(0, new_model.store(), At(0, 10)).ok());
  }
  EXPECT_EQ(CheckpointReader::Open(folder / "0")->manifest().TotalRows(), 30u);
  EXPECT_EQ(CheckpointReader::Open(folder / "1")->manifest().TotalRows(), 15u);
  EXPECT_FALSE(base::Exists(folder / "BEST"));
  EXPECT_FALSE(base::Exists(folder / "checkpoint/2-5"));
  // A resume continues the new run, not the old one's epoch 2.
  EXPECT_EQ((*MustOpen(folder.path(), OpenMode::kResume)->LoadNewest(new_model.store()))->name, "0");
}

TEST(SaveRoot, EpochsThatTheNewRunDidNotReplaceGoWhenItIsFinished) {
  base::TestFolder folder;
  TestModel model;
  {
    auto root = MustOpen(folder.path(), OpenMode::kFresh);
    for (uint64_t e = 0; e < 3; ++e) ASSERT_TRUE(root->SaveEpoch(e, model.store(), At(e, 10)).ok());
    ASSERT_TRUE(root->MarkFinished().ok());
    EXPECT_TRUE(base::Exists(folder / "0"));
  }
  const auto earlier = [&] {
    std::vector<std::string> names;
    for (const SaveInfo& save : ListSaves(folder.path()))
      if (save.earlier_run) names.push_back(save.name);
    return names;
  };
  EXPECT_TRUE(earlier().empty());
  auto root = MustOpen(folder.path(), OpenMode::kFresh);
  for (uint64_t e = 0; e < 2; ++e) ASSERT_TRUE(root->SaveEpoch(e, model.store(), At(e, 10)).ok());
  EXPECT_EQ(earlier(), std::vector<std::string>{"2"});
  EXPECT_TRUE(base::Exists(folder / "2"));  // until the new run has finished
  ASSERT_TRUE(root->MarkFinished().ok());
  EXPECT_FALSE(base::Exists(folder / "2"));
  EXPECT_TRUE(base::Exists(folder / "1"));
}

TEST(SaveRoot, AResumeWhereThereIsNoRunBeginsOne) {
  for (const char* place : {"", "none"}) {
    base::TestFolder folder;
    TestModel model;
    auto root = MustOpen(folder / place, OpenMode::kResume);
    const auto resumed = root->LoadNewest(model.store());
    ASSERT_EQ(resumed.status(), absl::OkStatus());
    EXPECT_FALSE(resumed->has_value());
    EXPECT_EQ(ReadRunRecord(folder / place)->phase, RunPhase::kRunning);
  }
}

TEST(SaveRoot, ARunInterruptedBeforeItsFirstSaveBeginsAnew) {
  base::TestFolder folder;
  TestModel model;
  {
    auto root = MustOpen(folder.path(), OpenMode::kFresh);
    ASSERT_TRUE(root->SaveEpoch(0, model.store(), At(0, 10)).ok());
    ASSERT_TRUE(root->MarkFinished().ok());
  }
  { MustOpen(folder.path(), OpenMode::kFresh); }
  const auto resumed = MustOpen(folder.path(), OpenMode::kResume)->LoadNewest(model.store());
  ASSERT_TRUE(resumed.ok());
  EXPECT_FALSE(resumed->has_value());
}

TEST(SaveRoot, AFinishedRunCanBeResumedForMoreEpochs) {
  base::TestFolder folder;
  TestModel model;
  {
    auto root = MustOpen(folder.path(), OpenMode::kFresh);
    ASSERT_TRUE(root->SaveEpoch(0, model.store(), At(0, 10)).ok());
    ASSERT_TRUE(root->MarkFinished().ok());
  }
  EXPECT_EQ((*MustOpen(folder.path(), OpenMode::kResume)->LoadNewest(model.store()))->name, "0");
}

TEST(SaveRoot, KeepsTheTwoNewestCheckpoints) {
  base::TestFolder folder;
  TestModel model;
  auto root = MustOpen(folder.path(), OpenMode::kFresh);
  for (uint64_t batch = 100; batch <= 500; batch += 100)
    ASSERT_TRUE(root->SaveCheckpoint(model.store(), At(0, batch)).ok());
  EXPECT_EQ(root->saves(), (std::vector<std::string>{"checkpoint/0-500", "checkpoint/0-400"}));
  EXPECT_EQ(ListSaves(folder.path()).size(), 2u);
}

TEST(SaveRoot, KeepsSoManyEpochsAndTheBest) {
  base::TestFolder folder;
  TestModel model;
  auto root = MustOpen(folder.path(), OpenMode::kFresh, 2);
  for (uint64_t e = 0; e < 5; ++e) {
    ASSERT_TRUE(root->SaveEpoch(e, model.store(), At(e, 10)).ok());
    if (e == 1) {
      ASSERT_TRUE(root->MarkBest(1).ok());
    }
  }
  EXPECT_EQ(root->saves(), (std::vector<std::string>{"4", "3", "1"}));
  std::vector<std::string> names;
  for (const SaveInfo& save : ListSaves(folder.path())) {
    names.push_back(save.name);
    EXPECT_EQ(save.current, save.name == "4");
    EXPECT_EQ(save.best, save.name == "1");
    EXPECT_TRUE(save.status.ok());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"1", "3", "4"}));
}

TEST(SaveRoot, AllEpochsAreKeptByDefault) {
  base::TestFolder folder;
  TestModel model;
  auto root = MustOpen(folder.path(), OpenMode::kFresh);
  for (uint64_t e = 0; e < 5; ++e) ASSERT_TRUE(root->SaveEpoch(e, model.store(), At(e, 10)).ok());
  EXPECT_EQ(ListSaves(folder.path()).size(), 5u);
}

TEST(SaveRoot, IsLockedWhileInUse) {
  base::TestFolder folder;
  auto root = MustOpen(folder.path(), OpenMode::kFresh);
  for (OpenMode mode : {OpenMode::kFresh, OpenMode::kResume, OpenMode::kOverwrite}) {
    const absl::Status status = OpenStatus(folder.path(), mode);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("in use by process ", getpid()))) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), folder.path())) << status;
  }
  root.reset();
  EXPECT_EQ(OpenStatus(folder.path(), OpenMode::kResume), absl::OkStatus());
}

TEST(SaveRoot, RemovesWhatACrashLeftAndNothingElse) {
  base::TestFolder folder;
  { MustOpen(folder.path(), OpenMode::kFresh); }
  for (const char* name :
       {"3.saving", "3.removing", "checkpoint/3-1.saving", "notes.saving", "mine", "checkpoint/mine"})
    ASSERT_TRUE(base::MakeFolders(folder / name).ok());
  ASSERT_TRUE(base::WriteFileAtomically(folder / "CURRENT.tmp", "half").ok());
  auto root = MustOpen(folder.path(), OpenMode::kResume);
  for (const char* name : {"3.saving", "3.removing", "checkpoint/3-1.saving", "CURRENT.tmp"})
    EXPECT_FALSE(base::Exists(folder / name)) << name;
  for (const char* name : {"notes.saving", "mine", "checkpoint/mine"}) EXPECT_TRUE(base::Exists(folder / name)) << name;
}

TEST(SaveRoot, AFailedSaveLeavesEverythingEarlierIntact) {
  base::TestFolder folder;
  TestModel model;
  model.FillRandom(100, 1);
  auto root = MustOpen(folder.path(), OpenMode::kFresh);
  ASSERT_TRUE(root->SaveEpoch(0, model.store(), At(0, 10)).ok());
  const auto before = base::FilesIn(folder.path());
  ASSERT_TRUE(base::ArmFailpoints("file.write=enospc").ok());
  const absl::Status status = root->SaveEpoch(1, model.store(), At(1, 10));
  ASSERT_TRUE(base::ArmFailpoints("").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), folder / "1")) << status;
  EXPECT_EQ(base::FilesIn(folder.path()), before);
  EXPECT_EQ(root->SaveEpoch(1, model.store(), At(1, 10)), absl::OkStatus());
}

// A real full disk, where one can be made.
TEST(SaveRoot, ASmallDiskIsFoundTooSmallBeforeAnythingIsTouched) {
  base::TestFolder folder;
  ASSERT_TRUE(base::MakeFolders(folder / "disk").ok());
  if (mount("none", (folder / "disk").c_str(), "tmpfs", 0, "size=4m") != 0) GTEST_SKIP() << "cannot mount a tmpfs";
  TestModel model;
  absl::Status status;
  std::map<std::string, std::string> before, after;
  {
    auto root = MustOpen(folder / "disk", OpenMode::kFresh);
    model.FillRandom(1000, 1);
    EXPECT_EQ(root->SaveEpoch(0, model.store(), At(0, 10)), absl::OkStatus());
    before = base::FilesIn(folder / "disk");
    model.FillRandom(60000, 2);  // 60000 × 76 bytes
    status = root->SaveEpoch(1, model.store(), At(1, 10));
    after = base::FilesIn(folder / "disk");
  }
  EXPECT_EQ(umount((folder / "disk").c_str()), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "bytes are needed")) << status;
  EXPECT_EQ(before, after);
}

TEST(SaveRoot, NamesThePathThatItMayNotWrite) {
  base::TestFolder folder;
  ASSERT_TRUE(base::WriteFileAtomically(folder / "file", "").ok());
  const absl::Status status = OpenStatus(folder / "file/out", OpenMode::kFresh);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), folder / "file/out")) << status;

  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec |
                                                  std::filesystem::perms::others_exec);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(2);
    const absl::Status denied = OpenStatus(folder / "out", OpenMode::kFresh);
    _exit(absl::IsPermissionDenied(denied) && absl::StrContains(denied.message(), folder / "out") ? 0 : 1);
  }
  int wait_status = 0;
  ASSERT_EQ(waitpid(child, &wait_status, 0), child);
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  EXPECT_EQ(WEXITSTATUS(wait_status), 0);
}

TEST(SaveRoot, PlantedLinksAreNotFollowed) {
  namespace fs = std::filesystem;
  base::TestFolder folder;
  ASSERT_TRUE(base::WriteFileAtomically(folder / "precious", "precious").ok());
  fs::create_directories(folder / "elsewhere");
  const std::string root = folder / "model";
  fs::create_directories(root);
  for (const char* name : {"RUN", "CURRENT.tmp", "RUN.tmp", "BEST.tmp"})
    fs::create_symlink(folder / "precious", root + "/" + name);
  fs::create_directory_symlink(folder / "elsewhere", root + "/0.saving");
  fs::create_symlink(folder / "precious", root + "/LOCK");
  const absl::Status refused = OpenStatus(root, OpenMode::kOverwrite);
  EXPECT_TRUE(absl::StrContains(refused.message(), "LOCK is not a regular file (a symbolic link)")) << refused;
  fs::remove(root + "/LOCK");
  const auto opened = MustOpen(root, OpenMode::kOverwrite);
  ASSERT_NE(opened, nullptr);
  TestModel model;
  LocalModel store(model.tables());
  ASSERT_EQ(opened->SaveEpoch(0, store, RunState{}), absl::OkStatus());
  ASSERT_EQ(opened->MarkBest(0), absl::OkStatus());
  EXPECT_EQ(base::ReadFile(folder / "precious").value(), "precious");
  EXPECT_TRUE(fs::is_empty(folder / "elsewhere"));
}

TEST(SaveRoot, AFifoIsNoRecord) {
  base::TestFolder folder;
  for (const char* name : {"RUN", "CURRENT", "BEST"}) {
    ASSERT_EQ(mkfifo((folder / name).c_str(), 0600), 0);
    const absl::Status status = std::string(name) == "RUN"       ? ReadRunRecord(folder.path()).status()
                                : std::string(name) == "CURRENT" ? ReadCurrent(folder.path()).status()
                                                                 : ReadBest(folder.path()).status();
    EXPECT_TRUE(absl::StrContains(status.message(), "is not a regular file (a FIFO)")) << status;
  }
}

TEST(SaveRoot, PlantedFoldersAreNotFollowed) {
  base::TestFolder folder;
  std::filesystem::create_directories(folder / "elsewhere/1-5.saving");
  std::filesystem::create_directory(folder / "out");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "out/checkpoint");
  const absl::Status refused = OpenStatus(folder / "out", OpenMode::kFresh);
  EXPECT_TRUE(absl::StrContains(refused.message(), "out/checkpoint is not a folder (a symbolic link)")) << refused;
  EXPECT_TRUE(std::filesystem::exists(folder / "elsewhere/1-5.saving"));
  std::filesystem::remove(folder / "out/checkpoint");
  // What a writer was killed in the middle of is put back; a link is not.
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "out/0.replaced");
  ASSERT_NE(MustOpen(folder / "out", OpenMode::kFresh), nullptr);
  for (const char* name : {"out/0", "out/0.replaced"}) EXPECT_FALSE(std::filesystem::exists(folder / name)) << name;
  EXPECT_TRUE(std::filesystem::exists(folder / "elsewhere/1-5.saving"));
}

}  // namespace
}  // namespace regatta::checkpoint
