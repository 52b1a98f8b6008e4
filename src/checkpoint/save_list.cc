#include "checkpoint/save_list.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/run_record.h"

namespace regatta::checkpoint {
namespace fs = std::filesystem;
namespace {

SaveInfo Describe(const std::string& folder, const std::string& name) {
  SaveInfo info;
  info.name = name;
  info.folder = folder;
  const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(folder);
  info.status = reader.status();
  if (!reader.ok()) return info;
  info.run = reader->manifest().run;
  if (reader->manifest().base) info.base = reader->manifest().base->id;
  info.parts = 0;
  for (const SaveLayer& layer : reader->layers()) {
    if (!layer.newest) continue;
    ++info.parts;
    info.rows += layer.manifest.TotalRows();
    info.bytes += layer.manifest.TotalBytes();
  }
  return info;
}

void Collect(const std::string& root, const std::string& prefix, std::vector<SaveInfo>& out) {
  std::error_code error;
  for (fs::directory_iterator it(root + "/" + prefix, error), end; !error && it != end; it.increment(error)) {
    const std::string name = prefix + it->path().filename().string();
    if (IsEpochName(name) || IsCheckpointName(name)) out.push_back(Describe(root + "/" + name, name));
  }
}

bool IsSave(const std::string& path) {
  return base::Exists(path + "/" + kManifestName) || base::Exists(path + "/" + PartName(0) + "/" + kManifestName);
}

// Saves that a program has put there under names of its own, for a message.
std::string SavesBelow(const std::string& path) {
  constexpr size_t kShown = 10;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (IsSave(it->path().string())) found.push_back(it->path().string());
  if (found.empty()) return "";
  std::sort(found.begin(), found.end());
  const size_t shown = std::min(found.size(), kShown);
  return absl::StrCat("; name one of the saves in it: ",
                      absl::StrJoin(found.begin(), found.begin() + static_cast<ptrdiff_t>(shown), ", "),
                      shown < found.size() ? absl::StrCat(" and ", found.size() - shown, " more") : "");
}

}  // namespace

std::vector<SaveInfo> ListSaves(const std::string& root) {
  std::vector<SaveInfo> saves;
  if (IsSave(root)) {
    saves.push_back(Describe(root, "."));
    return saves;
  }
  Collect(root, "", saves);
  Collect(root, "checkpoint/", saves);
  const absl::StatusOr<CurrentRecord> current = ReadCurrent(root);
  const absl::StatusOr<std::string> best = ReadBest(root);
  for (SaveInfo& save : saves) {
    save.current = current.ok() && current->saves.front() == save.name;
    save.earlier_run =
        current.ok() && std::find(current->saves.begin(), current->saves.end(), save.name) == current->saves.end();
    save.best = best.ok() && *best == save.name;
  }
  const auto order = [](const SaveInfo& s) {
    return std::make_tuple(s.status.ok(), s.run.step, s.run.epoch, s.run.epoch_state, s.name);
  };
  std::sort(saves.begin(), saves.end(), [&](const SaveInfo& a, const SaveInfo& b) { return order(a) < order(b); });
  return saves;
}

absl::StatusOr<std::string> ResolveSave(const std::string& path) {
  if (IsSave(path)) return path;
  const absl::StatusOr<CurrentRecord> current = ReadCurrent(path);
  if (current.ok()) return path + "/" + current->saves.front();
  if (!absl::IsNotFound(current.status())) return current.status();
  if (!base::Exists(path)) return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  return absl::NotFoundError(
      absl::StrCat(path, " is neither a save (no MANIFEST) nor a folder of saves (no CURRENT)", SavesBelow(path)));
}

}  // namespace regatta::checkpoint
