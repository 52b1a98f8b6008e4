// When a run ends before its last epoch: a signal or the end of its time, here or at another worker, or too much
// memory. Thread-safety: AfterStep and memory belong to one thread at a time; the rest is concurrent.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/status.h"
#include "run/rounds.h"
#include "run/stop_teller.h"
#include "run/team.h"
#include "train/trainer.h"

namespace regatta::run {

struct StopLimits {
  std::function<int()> signal;  // that this process got, or 0; asked by several threads at once
  double max_minutes = 0;       // since the StopControl was made; 0 = no limit
  // Why the process holds too much memory; OK: it does not. Asked between steps, now and then. Null = no limit.
  std::function<absl::Status()> check_memory = nullptr;
};

class StopControl {
 public:
  StopControl(Team& team, StopLimits limits);

  int signal() const { return limits_.signal(); }
  bool out_of_time() const;
  // Whether this worker is to stop, for a signal or its time; and whether this one or another is.
  bool over() const { return signal() != 0 || out_of_time(); }
  bool requested() const { return team_.stop_asked() || over(); }

  // While the run trains: tells the others as soon as over(), also while this worker waits for them.
  void TellTeam();
  // This worker has made a step: whether it is to stop. Then the others have been told.
  bool AfterStep();
  // Whether a stop that was requested has waited for a barrier for too long. The first call starts the clock.
  bool IsLate();
  // Why the run stopped, if it was for want of memory.
  const absl::Status& memory() const { return memory_; }
  // How this worker has ended a pass. A signal counts also if its data had ended before: the others stop for it.
  EndMessage EndOf(const train::PassEnd& end) const;

 private:
  using Clock = std::chrono::steady_clock;

  Team& team_;
  const StopLimits limits_;
  const Clock::time_point start_ = Clock::now();
  uint64_t steps_ = 0;
  absl::Status memory_;
  base::Mutex mu_;
  std::optional<Clock::time_point> requested_ ABSL_GUARDED_BY(mu_);  // since when IsLate is asked
  std::unique_ptr<StopTeller> teller_;                               // the last: its thread asks the others
};

}  // namespace regatta::run
