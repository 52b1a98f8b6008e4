#include "cli/worker_command.h"

#include <unistd.h>

#include <filesystem>
#include <string>

namespace regatta::cli {
namespace {

constexpr std::string_view kWorkerVerbs[] = {"train", "infer", "config"};

}  // namespace

bool IsWorkerVerb(std::string_view verb) {
  for (const std::string_view known : kWorkerVerbs)
    if (verb == known) return true;
  return false;
}

absl::Status ExecWorker(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot read /proc/self/exe: ", error.message()));
  const std::string worker = (self.parent_path() / "regatta-train").string();
  if (access(worker.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("regatta ", argv[1], " needs ", worker,
                                            ", which is not there; build with -DREGATTA_WITH_TORCH=ON, or install it "
                                            "beside regatta"));
  }
  std::string name = "regatta-train";
  char* const program = argv[0];
  argv[0] = name.data();
  execv(worker.c_str(), argv);
  argv[0] = program;
  return base::ErrnoStatus("cannot run", worker);
}

}  // namespace regatta::cli
