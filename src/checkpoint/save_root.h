// The place that runner.model_save_path names: the saves of a run, and what became of it.
//   <root>/<epoch>/                     a save of each epoch
//   <root>/checkpoint/<pass>-<batch>/   periodic ones; the two newest complete are kept
//   <root>/CURRENT  the newest complete save by name, then the run's older ones
//   <root>/RUN      running, interrupted or finished; when it began; a hash of its configuration
//   <root>/BEST     the best epoch          <root>/LOCK   held by the process that trains
// Thread-safety: one thread. Invariant: at every moment CURRENT names a complete save, and only saves that are complete
// are ever in their place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/model_store.h"
#include "checkpoint/root_lock.h"
#include "checkpoint/run_record.h"
#include "checkpoint/run_state.h"

namespace regatta::checkpoint {

enum class OpenMode : uint8_t {
  kFresh,      // refused where an interrupted run is; a finished run's saves are replaced epoch by epoch
  kResume,     // continues the run that is there, if any
  kOverwrite,  // as kFresh, whatever is there
};

struct SaveRootOptions {
  std::string path;
  OpenMode mode = OpenMode::kFresh;
  uint64_t config_hash = 0;
  uint64_t keep_epochs = 0;                        // 0 = all; the best one is always kept
  std::map<std::string, std::string> config = {};  // key → value as JSON: to tell what changed when a run is resumed
  std::optional<ModelIdentity> model = {};         // that saves carry; a save of another one is not resumed
};

class SaveRoot {
 public:
  // Takes the lock, removes what a crash left behind and records the run as running.
  // FAILED_PRECONDITION: in use by a process that is named, or an interrupted run is there (kFresh).
  // A resume where there is no run yet begins one.
  static absl::StatusOr<std::unique_ptr<SaveRoot>> Open(const SaveRootOptions& options);

  struct LoadedSave {
    std::string name;  // relative to the root
    RunState run;
  };
  // Fills the model from the newest complete save of this run, falling back to older ones with a warning where one is
  // damaged. None: the run was interrupted before its first save, so it begins anew.
  absl::StatusOr<std::optional<LoadedSave>> LoadNewest(ModelStore& model);

  // Afterwards the save is complete, durable and CURRENT; older ones that are no longer kept are gone. On an error all
  // earlier saves are as before.
  absl::Status SaveEpoch(uint64_t epoch, ModelStore& model, const RunState& run);
  absl::Status SaveCheckpoint(ModelStore& model, const RunState& run);

  absl::Status MarkBest(uint64_t epoch);
  absl::Status MarkInterrupted();
  // Also removes the epochs of an earlier run that this one did not replace.
  absl::Status MarkFinished();

  const std::string& path() const { return options_.path; }
  const RunRecord& run() const { return record_; }
  // Complete saves of this run, newest first.
  const std::vector<std::string>& saves() const { return saves_; }
  std::string FolderOf(const std::string& name) const { return options_.path + "/" + name; }

 private:
  SaveRoot(SaveRootOptions options, RootLock lock) : options_(std::move(options)), lock_(std::move(lock)) {}
  absl::Status Begin();
  absl::Status BeginAnew();
  absl::Status BeginResume();
  absl::Status CheckModel(const CheckpointReader& reader) const;
  absl::Status RemoveLeftOvers(const std::string& folder);
  absl::Status Commit(const std::string& name, ModelStore& model, const RunState& run);
  absl::Status Prune();
  absl::Status Remove(const std::string& name);

  const SaveRootOptions options_;
  const RootLock lock_;
  RunRecord record_;
  std::vector<std::string> saves_;
};

}  // namespace regatta::checkpoint
