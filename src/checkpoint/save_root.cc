#include "checkpoint/save_root.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/printable.h"
#include "checkpoint/save_list.h"
#include "glog/logging.h"

namespace regatta::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr char kRemovingSuffix[] = ".removing";
constexpr char kCheckpoints[] = "checkpoint";
constexpr size_t kKeptCheckpoints = 2;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Whether a damaged save may be passed over for an older one.
bool IsDamage(const absl::Status& status) { return absl::IsDataLoss(status) || absl::IsNotFound(status); }

// "key is 2, was 3" for each key that differs.
std::vector<std::string> Changes(const std::map<std::string, std::string>& before,
                                 const std::map<std::string, std::string>& now) {
  std::vector<std::string> changes;
  if (before.empty()) return changes;
  for (const auto& [key, value] : now) {
    const auto old = before.find(key);
    if (old == before.end() || old->second != value)
      changes.push_back(absl::StrCat(key, " is ", value, ", was ", old == before.end() ? "not set" : old->second));
  }
  for (const auto& [key, value] : before)
    if (!now.contains(key)) changes.push_back(absl::StrCat(key, " is not set, was ", value));
  return changes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SaveRoot>> SaveRoot::Open(const SaveRootOptions& options) {
  if (options.path.empty()) return absl::InvalidArgumentError("the save path is empty: set runner.model_save_path");
  RETURN_IF_ERROR(base::MakeFolders(options.path));
  ASSIGN_OR_RETURN(RootLock lock, RootLock::Acquire(options.path));
  std::unique_ptr<SaveRoot> root(new SaveRoot(options, std::move(lock)));
  const absl::Status checkpoints = base::CheckOwnFolder(root->FolderOf(kCheckpoints));
  if (!absl::IsNotFound(checkpoints)) RETURN_IF_ERROR(checkpoints);
  RETURN_IF_ERROR(root->RemoveLeftOvers(options.path));
  RETURN_IF_ERROR(root->RemoveLeftOvers(root->FolderOf(kCheckpoints)));
  RETURN_IF_ERROR(options.mode == OpenMode::kResume ? root->BeginResume() : root->Begin());
  return root;
}

absl::Status SaveRoot::Begin() {
  const absl::StatusOr<RunRecord> before = ReadRunRecord(options_.path);
  const bool fresh_ground = absl::IsNotFound(before.status()) && !base::Exists(FolderOf("CURRENT"));
  const bool finished = before.ok() && before->phase == RunPhase::kFinished;
  if (options_.mode == OpenMode::kFresh && !fresh_ground && !finished) {
    const absl::StatusOr<CurrentRecord> current = ReadCurrent(options_.path);
    const bool saved = current.ok() && before.ok() && current->run_id == before->id;
    return absl::FailedPreconditionError(absl::StrCat(
        options_.path, " holds an interrupted run",
        before.ok() ? absl::StrCat(" (started ", before->started, ", ") : " (",
        saved ? absl::StrCat("newest save ", current->saves.front()) : "no save yet",
        "): continue it with --resume, start over with --overwrite, or set another runner.model_save_path"));
  }
  return BeginAnew();
}

absl::Status SaveRoot::BeginAnew() {
  record_ = RunRecord::Begin(options_.config_hash);
  record_.config = options_.config;
  return WriteRunRecord(options_.path, record_);
}

absl::Status SaveRoot::BeginResume() {
  const absl::StatusOr<RunRecord> before = ReadRunRecord(options_.path);
  const absl::StatusOr<CurrentRecord> current = ReadCurrent(options_.path);
  if (!before.ok() && absl::IsNotFound(current.status()))
    return absl::IsNotFound(before.status()) ? BeginAnew() : before.status();
  if (!before.ok()) LOG(WARNING) << before.status().message() << "; going by CURRENT alone";
  record_ = before.ok() ? *before : RunRecord::Begin(options_.config_hash);
  if (current.ok()) {
    if (!before.ok()) record_.id = current->run_id;
    // Older ones may have been removed since CURRENT was written; that the newest is missing is worth a warning.
    for (const std::string& name : current->saves)
      if (current->run_id == record_.id && (saves_.empty() || base::Exists(FolderOf(name)))) saves_.push_back(name);
  } else if (!absl::IsNotFound(current.status())) {
    LOG(WARNING) << current.status().message() << "; looking for the newest complete save";
    for (const SaveInfo& save : ListSaves(options_.path))
      if (save.status.ok()) saves_.push_back(save.name);
    std::reverse(saves_.begin(), saves_.end());
  }
  if (before.ok() && before->config_hash != options_.config_hash) {
    const std::vector<std::string> changes = Changes(before->config, options_.config);
    LOG(WARNING) << "the configuration is not the one that " << options_.path << " was trained with so far"
                 << (changes.empty() ? "" : ": ") << base::Printable(absl::StrJoin(changes, ", "));
  }
  record_.phase = RunPhase::kRunning;
  record_.config_hash = options_.config_hash;
  record_.config = options_.config;
  record_.pid = RunRecord::Begin(0).pid;
  return WriteRunRecord(options_.path, record_);
}

// Only names that a SaveRoot makes are touched.
absl::Status SaveRoot::RemoveLeftOvers(const std::string& folder) {
  const bool checkpoints = folder != options_.path;
  for (const std::string& name : NamesIn(folder)) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) continue;
    const std::string stem = name.substr(0, dot), suffix = name.substr(dot);
    const std::string path = folder + "/" + name;
    if (checkpoints ? IsCheckpointName(absl::StrCat(kCheckpoints, "/", stem)) : IsEpochName(stem)) {
      if (suffix == kSavingSuffix || suffix == kReplacedSuffix)
        RETURN_IF_ERROR(CleanUpSave(folder + "/" + stem));
      else if (suffix == kRemovingSuffix)
        RETURN_IF_ERROR(base::RemoveTree(path));
    } else if (!checkpoints && (name == "RUN.tmp" || name == "CURRENT.tmp" || name == "BEST.tmp")) {
      RETURN_IF_ERROR(base::RemoveTree(path));
    }
  }
  return absl::OkStatus();
}

absl::Status SaveRoot::CheckModel(const CheckpointReader& reader) const {
  const std::optional<ModelIdentity>& saved = reader.manifest().run.model;
  if (!saved.has_value() || !options_.model.has_value()) return absl::OkStatus();
  return base::Annotate(CheckSameModel(*saved, *options_.model), reader.folder());
}

absl::StatusOr<std::optional<SaveRoot::LoadedSave>> SaveRoot::LoadNewest(ModelStore& model) {
  std::vector<std::string> damage;
  for (size_t i = 0; i < saves_.size(); ++i) {
    const std::string name = saves_[i];
    absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(FolderOf(name));
    absl::Status status = reader.status();
    if (status.ok()) status = CheckModel(*reader);
    if (status.ok()) status = model.LoadFrom(*reader, LoadKind::kTraining);
    absl::StatusOr<RunState> run = status.ok() ? reader->ReadRunState() : absl::StatusOr<RunState>(status);
    if (run.ok()) {
      saves_.erase(saves_.begin(), saves_.begin() + static_cast<ptrdiff_t>(i));
      return LoadedSave{name, *std::move(run)};
    }
    if (!IsDamage(run.status())) return run.status();
    LOG(WARNING) << "save " << name << " is damaged, trying the one before it: " << run.status().message();
    damage.emplace_back(run.status().message());
  }
  if (damage.empty()) return std::optional<LoadedSave>();
  return absl::DataLossError(
      absl::StrCat("every save under ", options_.path, " is damaged: ", absl::StrJoin(damage, "; ")));
}

absl::Status SaveRoot::SaveEpoch(uint64_t epoch, ModelStore& model, const RunState& run) {
  return Commit(absl::StrCat(epoch), model, run);
}

absl::Status SaveRoot::SaveCheckpoint(ModelStore& model, const RunState& run) {
  RETURN_IF_ERROR(base::MakeOwnFolder(FolderOf(kCheckpoints)));
  return Commit(absl::StrCat(kCheckpoints, "/", run.position.pass, "-", run.position.low), model, run);
}

absl::Status SaveRoot::Commit(const std::string& name, ModelStore& model, const RunState& run) {
  ASSIGN_OR_RETURN(SaveContents contents, model.Contents());
  contents.run = run;
  contents.run.model = options_.model;
  RETURN_IF_ERROR(WriteCheckpoint(FolderOf(name), contents));
  std::vector<std::string> saves = {name};
  for (const std::string& older : saves_)
    if (older != name && base::Exists(FolderOf(older))) saves.push_back(older);
  RETURN_IF_ERROR(base::Failpoint("save.current"));
  if (saves_.empty()) RETURN_IF_ERROR(base::RemoveTree(FolderOf("BEST")));  // of the run before
  RETURN_IF_ERROR(WriteCurrent(options_.path, CurrentRecord{record_.id, saves}));
  saves_ = std::move(saves);
  // The save is made; what cannot be removed is tried again after the next one.
  if (absl::Status status = Prune(); !status.ok()) LOG(WARNING) << status.message();
  return absl::OkStatus();
}

absl::Status SaveRoot::Prune() {
  RETURN_IF_ERROR(base::Failpoint("save.prune"));
  const absl::StatusOr<std::string> best = ReadBest(options_.path);
  size_t epochs = 0, checkpoints = 0;
  std::vector<std::string> kept, dropped;
  for (const std::string& name : saves_) {
    const bool keep = IsEpochName(name) ? options_.keep_epochs == 0 || ++epochs <= options_.keep_epochs ||
                                              (best.ok() && *best == name)
                                        : ++checkpoints <= kKeptCheckpoints;
    (keep ? kept : dropped).push_back(name);
  }
  // Periodic saves that an earlier run left are of no use once this run has a save.
  for (const std::string& stem : NamesIn(FolderOf(kCheckpoints))) {
    const std::string name = absl::StrCat(kCheckpoints, "/", stem);
    if (IsCheckpointName(name) && std::find(saves_.begin(), saves_.end(), name) == saves_.end())
      dropped.push_back(name);
  }
  for (const std::string& name : dropped) RETURN_IF_ERROR(Remove(name));
  saves_ = std::move(kept);
  return absl::OkStatus();
}

// In two steps, so that no half-removed save is ever in its place.
absl::Status SaveRoot::Remove(const std::string& name) {
  const std::string from = FolderOf(name), to = from + kRemovingSuffix;
  if (!base::Exists(from)) return absl::OkStatus();
  RETURN_IF_ERROR(base::RemoveTree(to));
  RETURN_IF_ERROR(base::RenameDurably(from, to));
  return base::RemoveTree(to);
}

absl::Status SaveRoot::MarkBest(uint64_t epoch) { return WriteBest(options_.path, absl::StrCat(epoch)); }

absl::Status SaveRoot::MarkInterrupted() {
  record_.phase = RunPhase::kInterrupted;
  return WriteRunRecord(options_.path, record_);
}

absl::Status SaveRoot::MarkFinished() {
  record_.phase = RunPhase::kFinished;
  RETURN_IF_ERROR(WriteRunRecord(options_.path, record_));
  if (saves_.empty()) return absl::OkStatus();
  for (const std::string& name : NamesIn(options_.path)) {
    if (!IsEpochName(name) || std::find(saves_.begin(), saves_.end(), name) != saves_.end()) continue;
    RETURN_IF_ERROR(Remove(name));
    LOG(INFO) << "removed " << FolderOf(name) << ", which an earlier run had left there";
  }
  return absl::OkStatus();
}

}  // namespace regatta::checkpoint
