#include "launch/job_mark.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace regatta::launch {
namespace {

constexpr auto kPause = std::chrono::milliseconds(10);
constexpr int kMaxRounds = 500;  // of killing, each a pause apart

// A file that the kernel makes about a process; nothing where this process may not read it, "" of a zombie's
// environment.
std::optional<std::string> AboutProcess(pid_t pid, const char* name) {
  const int fd = open(absl::StrCat("/proc/", pid, "/", name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string bytes;
  char buffer[16384];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) bytes.append(buffer, static_cast<size_t>(n));
  close(fd);
  if (n < 0) return std::nullopt;
  return bytes;
}

// 0 where it is not known, or the process is a zombie.
pid_t GroupOf(pid_t pid) {
  const std::string stat = AboutProcess(pid, "stat").value_or("");
  // The name, in parentheses, may hold anything. Behind it: state, parent, group.
  const size_t name = stat.rfind(')');
  if (name == std::string::npos) return 0;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(name + 1), ' ', absl::SkipEmpty());
  pid_t group = 0;
  return fields.size() > 2 && fields[0] != "Z" && absl::SimpleAtoi(fields[2], &group) ? group : 0;
}

bool IsOurs(pid_t pid) {
  const std::string status = AboutProcess(pid, "status").value_or("");
  const size_t at = status.find("\nUid:\t");
  if (at == std::string::npos) return false;
  uid_t user = 0;
  return absl::SimpleAtoi(absl::string_view(status).substr(at + 6, status.find('\t', at + 6) - at - 6), &user) &&
         user == getuid();
}

void SignalAll(const std::vector<pid_t>& pids, int number) {
  for (const pid_t pid : pids) kill(pid, number);
}

}  // namespace

JobMark::JobMark() {
  std::random_device random;
  id_ = absl::StrCat(getpid(), "-", absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

std::string JobMark::Variable(const char* outer) const {
  return absl::StrCat(kName, "=", outer == nullptr ? "" : outer, "/", id_);
}

std::vector<pid_t> JobMark::Find() const {
  std::vector<pid_t> found;
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return found;
  const std::string prefix = absl::StrCat(kName, "="), part = absl::StrCat("/", id_);
  const pid_t self = getpid();
  while (const dirent* entry = readdir(processes)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid) || pid == self) continue;
    const std::optional<std::string> shown = AboutProcess(pid, "environ");
    if (!shown.has_value() && groups_.contains(GroupOf(pid)) && IsOurs(pid)) found.push_back(pid);
    const std::string environment = shown.value_or("");
    if (!absl::StrContains(environment, part)) continue;  // nearly all end here
    for (const absl::string_view variable : absl::StrSplit(environment, '\0')) {
      if (!absl::StartsWith(variable, prefix) || !absl::StrContains(absl::StrCat(variable, "/"), part + "/")) continue;
      found.push_back(pid);
      break;
    }
  }
  closedir(processes);
  return found;
}

int JobMark::End(std::chrono::milliseconds timeout) const {
  std::vector<pid_t> left = Find();
  const int count = static_cast<int>(left.size());
  if (timeout.count() > 0) SignalAll(left, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!left.empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPause);
    left = Find();
  }
  for (int round = 0; !left.empty() && round < kMaxRounds; ++round) {
    SignalAll(left, SIGKILL);
    std::this_thread::sleep_for(kPause);
    left = Find();
  }
  return count;
}

}  // namespace regatta::launch
