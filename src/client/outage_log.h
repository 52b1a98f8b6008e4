// Logs that a server is away while a lane waits for it: which server, since when, and how long the wait may last. All
// lanes of a server share one object, so that one line comes every few seconds, not one from every lane.
// Thread-safety: all methods are concurrent.
#pragma once

#include <chrono>
#include <string>

#include "base/mutex.h"

namespace regatta::client {

class OutageLog {
 public:
  explicit OutageLog(const std::string& server) : server_(server) {}

  // A lane has waited for so long, and waits for `timeout` in all. A short wait is not logged.
  void LogIfDue(std::chrono::duration<double> waited, std::chrono::duration<double> timeout);

 private:
  const std::string server_;
  base::Mutex mu_;
  std::chrono::steady_clock::time_point next_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::client
