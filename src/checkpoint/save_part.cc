#include "checkpoint/save_part.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"

namespace regatta::checkpoint {
namespace {

constexpr std::string_view kPartPrefix = "part-";

// Without slashes at its end.
std::filesystem::path Lexical(const std::string& folder) {
  std::filesystem::path path(folder);
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  return path;
}

}  // namespace

bool IsSaveId(std::string_view id) {
  if (id.empty() || id.size() > 64 || id == "." || id == "..") return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

std::string PartName(uint32_t server) {
  const std::string digits = absl::StrCat(server);
  return absl::StrCat(base::View(kPartPrefix), std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0'), digits);
}

bool IsPartName(std::string_view name) {
  if (!name.starts_with(kPartPrefix) || name.size() < kPartPrefix.size() + 3) return false;
  name.remove_prefix(kPartPrefix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string BaseFolder(const std::string& folder, const std::string& id) {
  const std::filesystem::path path = Lexical(folder);
  const std::string name = path.filename().string();
  if (IsPartName(name)) return (path.parent_path().parent_path() / id / name).string();
  return (path.parent_path() / id).string();
}

absl::StatusOr<SaveBase> BaseAt(const std::string& folder) {
  const std::filesystem::path path = Lexical(folder);
  const bool part = IsPartName(path.filename().string());
  SaveBase saved{(part ? path.parent_path() : path).filename().string(), 0};
  if (!IsSaveId(saved.id)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, " cannot be the base of a save: its name must be 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-'"));
  }
  ASSIGN_OR_RETURN(const std::string text, base::ReadFile((path / kManifestName).string(), kMaxManifestBytes));
  saved.manifest = ManifestHash(text);
  return saved;
}

uint64_t ManifestHash(std::string_view text) { return base::HashBytes(text); }

}  // namespace regatta::checkpoint
