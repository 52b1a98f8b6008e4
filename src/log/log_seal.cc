#include "log/log_seal.h"

#include <filesystem>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "base/failpoint.h"
#include "base/file.h"

namespace regatta::log {
namespace fs = std::filesystem;
namespace {

absl::Status Copy(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, base::ReadOwnFile(path));
  RETURN_IF_ERROR(base::WriteFileAtomically(path, bytes));
  return base::Failpoint("log.seal");
}

}  // namespace

// A log's writer has its last segment open, and its end mark. The marks first: a record that a mark counts was written
// before, so the segments that are copied later have it.
absl::Status SealLogs(const std::string& folder) {
  const absl::Status there = base::CheckOwnFolder(folder);
  if (absl::IsNotFound(there)) return absl::OkStatus();
  RETURN_IF_ERROR(there);
  std::vector<std::string> marks;
  std::map<std::string, std::string> last;  // segment of every log: the numbers in their names have one length
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::EndsWith(name, ".end")) marks.push_back(entry.path().string());
    if (!absl::EndsWith(name, ".log")) continue;
    std::string& path = last[name.substr(0, name.rfind('-'))];
    path = std::max(path, entry.path().string());
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot list ", folder, ": ", error.message()));
  for (const std::string& mark : marks) RETURN_IF_ERROR(Copy(mark));
  for (const auto& [log, segment] : last) RETURN_IF_ERROR(Copy(segment));
  return absl::OkStatus();
}

}  // namespace regatta::log
