#include "binding/interrupt_watch.h"

#include <chrono>
#include <utility>

#include "binding/interrupt.h"
#include "binding/stop_signal.h"

namespace regatta::binding {
namespace {

constexpr std::chrono::milliseconds kPeriod(50);  // a signal handler cannot wake a thread

bool Stopping() { return StopSignal::watching() && StopSignal::Requested() != 0; }

}  // namespace

InterruptWatch::InterruptWatch(std::function<void()> stop) : stop_(std::move(stop)), thread_([this] { Run(); }) {}

InterruptWatch::~InterruptWatch() {
  {
    base::MutexLock lock(mu_);
    ended_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void InterruptWatch::Run() {
  {
    base::MutexLock lock(mu_);
    while (!ended_ && !Interruptible::Interrupted() && !Stopping()) changed_.WaitFor(mu_, kPeriod);
    if (ended_) return;
  }
  stop_();
}

}  // namespace regatta::binding
