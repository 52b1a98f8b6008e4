#include "run/stop_teller.h"

#include <chrono>
#include <utility>

namespace regatta::run {
namespace {

constexpr std::chrono::milliseconds kTellerPoll(100);

}  // namespace

StopTeller::StopTeller(std::function<bool()> is_over, std::function<void()> tell)
    : is_over_(std::move(is_over)), tell_(std::move(tell)), thread_([this] { Run(); }) {}

StopTeller::~StopTeller() {
  {
    base::MutexLock lock(mu_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void StopTeller::Run() {
  while (!is_over_()) {
    base::MutexLock lock(mu_);
    if (!ending_) changed_.WaitFor(mu_, kTellerPoll);
    if (ending_) return;
  }
  tell_();
}

}  // namespace regatta::run
