#include "run/stop_control.h"

#include <glog/logging.h>

#include <utility>

#include "base/elapsed.h"

namespace regatta::run {
namespace {

// For the barrier of sync at which all stop: workers may have become much slower since it was planned, or wait for
// data.
constexpr std::chrono::seconds kStopTimeout(10);
constexpr uint64_t kStepsAMemoryCheck = 20;

}  // namespace

StopControl::StopControl(Team& team, StopLimits limits) : team_(team), limits_(std::move(limits)) {}

bool StopControl::out_of_time() const {
  return limits_.max_minutes > 0 && base::SecondsSince(start_) / 60 >= limits_.max_minutes;
}

void StopControl::TellTeam() {
  teller_ = std::make_unique<StopTeller>([this] { return over(); }, [this] { team_.AskToStop(); });
}

bool StopControl::AfterStep() {
  if (limits_.check_memory != nullptr && !over() && steps_++ % kStepsAMemoryCheck == 0)
    memory_ = limits_.check_memory();
  if (memory_.ok() && !requested()) return false;
  team_.AskToStop();
  return true;
}

bool StopControl::IsLate() {
  base::MutexLock lock(mu_);
  const auto now = Clock::now();
  if (!requested_.has_value()) requested_ = now;
  if (now - *requested_ < kStopTimeout) return false;
  LOG_FIRST_N(WARNING, 1) << "stops without having met the others, for " << kStopTimeout.count()
                          << " s: a resumed run may differ from one that was not stopped";
  return true;
}

EndMessage StopControl::EndOf(const train::PassEnd& end) const {
  EndMessage message;
  message.set_stopped(!end.complete);
  message.set_signal(static_cast<uint32_t>(signal()));
  message.set_out_of_time(out_of_time());
  return message;
}

}  // namespace regatta::run
