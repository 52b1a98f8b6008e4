// Logs that a server is away while somebody waits for it: which one, since when, and how long still. One for all who
// wait for the same server, so that a line comes every few seconds and not one from every lane. Thread-safety: all
// methods are concurrent.
#pragma once

#include <chrono>
#include <string>

#include "base/mutex.h"

namespace regatta::client {

class OutageLog {
 public:
  explicit OutageLog(const std::string& server) : server_(server) {}

  // Somebody has waited for so long and will for `timeout` in all. A short wait is not worth a line.
  void LogIfDue(std::chrono::duration<double> waited, std::chrono::duration<double> timeout);

 private:
  const std::string server_;
  base::Mutex mu_;
  std::chrono::steady_clock::time_point next_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::client
