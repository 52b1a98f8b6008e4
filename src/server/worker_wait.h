// The log lines that name the missing workers while a server waits for them. The pause between two lines grows to ten
// minutes.
// Thread-safety: belongs to one thread.
#pragma once

#include <chrono>
#include <string>

#include "server/roster.h"

namespace regatta::server {

class WorkerWait {
 public:
  using Clock = std::chrono::steady_clock;
  // The wait begins at `start`, for `workers` (0 = as many as the first one says); the first line comes after `quiet`.
  WorkerWait(int workers, std::chrono::duration<double> quiet, Clock::time_point start);

  // The line to log now; "" if none is due. `roster` is null before the first worker has come.
  std::string LineIfDue(Clock::time_point now, const Roster* roster);

 private:
  std::string Missing(const Roster* roster) const;

  const int workers_;
  const Clock::time_point start_;
  Clock::duration pause_;  // before the next line
  Clock::time_point next_;
};

}  // namespace regatta::server
