// While it lives, looks now and then whether this worker is to stop, and tells it once: also while the run waits for a
// step or a barrier of others, who may be waiting for something that a stop ends.
// Thread-safety: what it is made with is called by a thread of its own.
#pragma once

#include <functional>
#include <thread>

#include "base/mutex.h"

namespace regatta::run {

class StopTeller {
 public:
  StopTeller(std::function<bool()> is_over, std::function<void()> tell);
  ~StopTeller();
  StopTeller(const StopTeller&) = delete;
  StopTeller& operator=(const StopTeller&) = delete;

 private:
  void Run();

  const std::function<bool()> is_over_;
  const std::function<void()> tell_;
  base::Mutex mu_;
  base::CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace regatta::run
