// A thread that looks for signals while others wait for what only a call can end: it calls `stop` when Ctrl+C comes in
// a wait (Interruptible), or a session is asked to stop (StopSignal). Thread-safety: made and destroyed by one thread;
// `stop` runs on the watch's own, once at the most.
#pragma once

#include <functional>
#include <thread>

#include "base/mutex.h"

namespace regatta::binding {

class InterruptWatch {
 public:
  explicit InterruptWatch(std::function<void()> stop);
  // Afterwards `stop` does not run.
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  void Run();

  const std::function<void()> stop_;
  base::Mutex mu_;
  base::CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace regatta::binding
