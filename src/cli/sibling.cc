#include "cli/sibling.h"

#include <unistd.h>

#include <filesystem>

namespace regatta::cli {

absl::Status ExecSibling(const std::string& program, const std::vector<std::string>& words, std::string_view hint) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot read /proc/self/exe: ", error.message()));
  const std::string path = (self.parent_path() / program).string();
  if (access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ", which this command needs, is not there; ", base::View(hint)));
  }
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  return base::ErrnoStatus("cannot run", path);
}

}  // namespace regatta::cli
