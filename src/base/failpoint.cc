#include "base/failpoint.h"

#include <chrono>
#include <csignal>
#include <map>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"

namespace regatta::base {
namespace internal {
std::atomic<bool> failpoints_armed{false};
}

namespace {

constexpr std::chrono::milliseconds kSlow(5);

enum class Action { kCrash, kStop, kSlow, kError, kEnospc };
struct Armed {
  Action action = Action::kError;
  int at = 0;  // 0 = every hit
  int hits = 0;
};

struct Registry {
  Mutex mu;
  std::map<std::string, Armed, std::less<>> armed ABSL_GUARDED_BY(mu);
};
Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

}  // namespace

absl::Status ArmFailpoints(std::string_view spec) {
  std::map<std::string, Armed, std::less<>> armed;
  for (absl::string_view part : absl::StrSplit(View(spec), ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const std::pair<std::string, std::string> action = absl::StrSplit(pair.second, absl::MaxSplits('@', 1));
    Armed entry;
    if (action.first == "crash") {
      entry.action = Action::kCrash;
    } else if (action.first == "stop") {
      entry.action = Action::kStop;
    } else if (action.first == "slow") {
      entry.action = Action::kSlow;
    } else if (action.first == "error") {
      entry.action = Action::kError;
    } else if (action.first == "enospc") {
      entry.action = Action::kEnospc;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("failpoint '", part, "': want name=crash|stop|slow|error|enospc[@n]"));
    }
    if (!action.second.empty() && (!absl::SimpleAtoi(action.second, &entry.at) || entry.at < 1))
      return absl::InvalidArgumentError(absl::StrCat("failpoint '", part, "': @n wants a count from 1"));
    armed[pair.first] = entry;
  }
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  internal::failpoints_armed = !armed.empty();
  registry.armed = std::move(armed);
  return absl::OkStatus();
}

absl::Status internal::HitFailpoint(std::string_view name) {
  Action action = Action::kError;
  {
    Registry& registry = TheRegistry();
    MutexLock lock(registry.mu);
    auto it = registry.armed.find(name);
    if (it == registry.armed.end()) return absl::OkStatus();
    Armed& armed = it->second;
    ++armed.hits;
    if (armed.at != 0 && armed.hits != armed.at) return absl::OkStatus();
    action = armed.action;
  }
  switch (action) {
    case Action::kCrash:
      raise(SIGKILL);
      break;
    case Action::kStop:
      raise(SIGSTOP);
      return absl::OkStatus();
    case Action::kSlow:
      std::this_thread::sleep_for(kSlow);
      return absl::OkStatus();
    case Action::kEnospc:
      return absl::ResourceExhaustedError(absl::StrCat("failpoint ", View(name), ": No space left on device"));
    case Action::kError:
      break;
  }
  return absl::InternalError(absl::StrCat("failpoint ", View(name)));
}

}  // namespace regatta::base
