#include "base/failpoint.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <map>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"
#include "base/nearest.h"

namespace regatta::base {
namespace internal {
std::atomic<bool> failpoints_armed{false};
}

namespace {

constexpr std::chrono::milliseconds kSlow(5);

// Every place that can fail, by what writes there. docs/reliability.md says who passes which when.
const std::string kPlaces[] = {
    "checkpoint.begun", "checkpoint.gathered", "compactor.dropped", "compactor.snapshot", "compactor.written",
    "file.fsync",       "file.rename",         "file.write",        "journal.compact",    "journal.compacted",
    "journal.dropped",  "journal.synced",      "journal.written",   "lane.applied",       "lane.logged",
    "lane.replay",      "lane.reply",          "lease.renamed",     "log.drop",           "log.end",
    "log.forget",       "log.fsync",           "log.seal",          "log.segment",        "log.write",
    "push.lane",        "save.current",        "save.data",         "save.exchange",      "save.manifest",
    "save.prune",       "save.rename",         "save.switch",       "snapshot.begin",     "snapshot.read",
    "step.complete",
};

bool IsPlace(std::string_view name) {
  return std::find(std::begin(kPlaces), std::end(kPlaces), name) != std::end(kPlaces);
}

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
    if (!IsPlace(pair.first)) {
      const std::string meant = NearestName(pair.first, kPlaces);
      return absl::InvalidArgumentError(absl::StrCat("failpoint '", part, "': no place is called '", pair.first, "'; ",
                                                     meant.empty()
                                                         ? absl::StrCat("there are ", absl::StrJoin(kPlaces, ", "))
                                                         : absl::StrCat("is it ", meant, "?")));
    }
    armed[pair.first] = entry;
  }
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  internal::failpoints_armed = !armed.empty();
  registry.armed = std::move(armed);
  return absl::OkStatus();
}

absl::Status internal::HitFailpoint(std::string_view name) {
  CHECK(IsPlace(name)) << "failpoint " << name << " is not in the table of failpoint.cc";
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
