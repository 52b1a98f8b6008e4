#include "launch/job_mark.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
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

// The environment a process was started with, "" where it is not ours to read or the process is a zombie.
std::string EnvironmentOf(pid_t pid) {
  const int fd = open(absl::StrCat("/proc/", pid, "/environ").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string bytes;
  char buffer[16384];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) bytes.append(buffer, static_cast<size_t>(n));
  close(fd);
  return bytes;
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
    const std::string environment = EnvironmentOf(pid);
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

int JobMark::End(std::chrono::milliseconds patience) const {
  std::vector<pid_t> left = Find();
  const int count = static_cast<int>(left.size());
  if (patience.count() > 0) SignalAll(left, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + patience;
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
