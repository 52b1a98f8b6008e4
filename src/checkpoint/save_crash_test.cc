// A process that dies at any write, sync or rename of a save leaves the old save or the new one, whole.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/testing/test_folder.h"
#include "checkpoint/save_list.h"
#include "checkpoint/save_root.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

RunState CrashAt(uint64_t pass, uint64_t batch) {
  RunState run;
  run.epoch = pass;
  run.position = {pass, batch, 0};
  run.step = pass * 100 + batch;
  return run;
}

enum class Ending { kCompleted, kCrashed, kFailed };

// Runs `fn` in a child with failpoints armed.
template <typename Fn>
Ending InChild(const std::string& failpoints, const Fn& fn) {
  const pid_t child = fork();
  if (child == 0) {
    if (!base::ArmFailpoints(failpoints).ok()) _exit(3);
    _exit(fn() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return Ending::kCrashed;
  }
  return WEXITSTATUS(status) == 0 ? Ending::kCompleted : Ending::kFailed;
}

// What the run is doing when it dies, and which states a resume may then find.
struct Scenario {
  const char* name;
  bool (*save)(SaveRoot& root, const TestModel& model);
};

bool ReplaceEpoch(SaveRoot& root, const TestModel& model) {
  return root.SaveEpoch(0, model.store(), CrashAt(0, 50)).ok();
}
bool NextEpoch(SaveRoot& root, const TestModel& model) { return root.SaveEpoch(1, model.store(), CrashAt(1, 50)).ok(); }
bool Periodic(SaveRoot& root, const TestModel& model) {
  return root.SaveCheckpoint(model.store(), CrashAt(1, 50)).ok();
}

constexpr Scenario kScenarios[] = {
    {"replace an epoch", &ReplaceEpoch}, {"next epoch", &NextEpoch}, {"periodic", &Periodic}};

// A root with an epoch and two periodic saves, so that the next one also prunes.
void MakeRoot(const std::string& path, const TestModel& old_model) {
  auto root = SaveRoot::Open({path, OpenMode::kFresh, 1, 1});
  ASSERT_TRUE(root.ok());
  ASSERT_TRUE((*root)->SaveCheckpoint(old_model.store(), CrashAt(0, 10)).ok());
  ASSERT_TRUE((*root)->SaveCheckpoint(old_model.store(), CrashAt(0, 20)).ok());
  ASSERT_TRUE((*root)->SaveEpoch(0, old_model.store(), CrashAt(0, 30)).ok());
}

void ExpectOldOrNew(const std::string& path, const TestModel& old_model, const TestModel& new_model, Ending ending) {
  auto root = SaveRoot::Open({path, OpenMode::kResume, 1, 1});
  ASSERT_EQ(root.status(), absl::OkStatus());
  for (const SaveInfo& save : ListSaves(path)) {
    ASSERT_EQ(save.status, absl::OkStatus()) << save.name;
    EXPECT_TRUE(CheckpointReader::Open(save.folder)->Verify().empty()) << save.name;
  }
  TestModel found;
  const auto resumed = (*root)->LoadNewest(found.store());
  ASSERT_EQ(resumed.status(), absl::OkStatus());
  ASSERT_TRUE(resumed->has_value());
  const bool is_new = (*resumed)->run.position.low == 50;
  EXPECT_TRUE(found.SameBits(is_new ? new_model : old_model));
  EXPECT_TRUE(is_new || ending != Ending::kCompleted);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    const std::string extension = entry.path().extension().string();
    EXPECT_TRUE(extension.empty()) << "left over: " << entry.path();
  }
}

TEST(SaveCrash, AtEveryWriteSyncAndRename) {
  TestModel old_model, new_model;
  old_model.FillRandom(50, 1);
  new_model.FillRandom(60, 2);
  int crashes = 0;
  for (const Scenario& scenario : kScenarios) {
    for (const char* point : {"file.write", "file.fsync", "file.rename", "save.data", "save.manifest", "save.switch",
                              "save.current", "save.prune"}) {
      for (int n = 1;; ++n) {
        ASSERT_LT(n, 100);
        base::TestFolder folder;
        MakeRoot(folder.path(), old_model);
        const Ending ending = InChild(absl::StrCat(point, "=crash@", n), [&] {
          auto root = SaveRoot::Open({folder.path(), OpenMode::kResume, 1, 1});
          TestModel ignored;
          return root.ok() && (*root)->LoadNewest(ignored.store()).ok() && scenario.save(**root, new_model);
        });
        ASSERT_NE(ending, Ending::kFailed) << scenario.name << ": " << point << "@" << n;
        SCOPED_TRACE(absl::StrCat(scenario.name, ": ", point, "@", n));
        ExpectOldOrNew(folder.path(), old_model, new_model, ending);
        if (ending == Ending::kCompleted) break;
        ++crashes;
      }
    }
  }
  EXPECT_GT(crashes, 50);
  RecordProperty("crashes", crashes);
}

// The same on a disk that cannot exchange folders: two renames, of which a crash may leave one.
TEST(SaveCrash, WithoutExchange) {
  TestModel old_model, new_model;
  old_model.FillRandom(50, 1);
  new_model.FillRandom(60, 2);
  for (const char* point : {"file.rename", "file.fsync"}) {
    for (int n = 1;; ++n) {
      ASSERT_LT(n, 100);
      base::TestFolder folder;
      MakeRoot(folder.path(), old_model);
      const Ending ending = InChild(absl::StrCat("save.exchange=error,", point, "=crash@", n), [&] {
        auto root = SaveRoot::Open({folder.path(), OpenMode::kResume, 1, 1});
        TestModel ignored;
        return root.ok() && (*root)->LoadNewest(ignored.store()).ok() && ReplaceEpoch(**root, new_model);
      });
      SCOPED_TRACE(absl::StrCat(point, "@", n));
      ExpectOldOrNew(folder.path(), old_model, new_model, ending);
      if (ending == Ending::kCompleted) break;
    }
  }
}

// An error instead of a crash: the save says so and all that was there stays.
TEST(SaveCrash, AnErrorAtEveryWriteSyncAndRename) {
  TestModel old_model, new_model;
  old_model.FillRandom(50, 1);
  new_model.FillRandom(60, 2);
  for (const char* point : {"file.write", "file.fsync", "file.rename"}) {
    for (const char* action : {"error", "enospc"}) {
      bool completed = false;
      for (int n = 1; !completed; ++n) {
        ASSERT_LT(n, 100);
        base::TestFolder folder;
        MakeRoot(folder.path(), old_model);
        {
          auto root = SaveRoot::Open({folder.path(), OpenMode::kResume, 1, 1});
          TestModel ignored;
          ASSERT_TRUE((*root)->LoadNewest(ignored.store()).ok());
          ASSERT_TRUE(base::ArmFailpoints(absl::StrCat(point, "=", action, "@", n)).ok());
          completed = (*root)->SaveEpoch(1, new_model.store(), CrashAt(1, 50)).ok();
          ASSERT_TRUE(base::ArmFailpoints("").ok());
        }
        SCOPED_TRACE(absl::StrCat(point, "=", action, "@", n));
        ExpectOldOrNew(folder.path(), old_model, new_model, completed ? Ending::kCompleted : Ending::kFailed);
      }
    }
  }
}

}  // namespace
}  // namespace regatta::checkpoint
