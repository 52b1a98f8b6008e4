#include "worker/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace regatta::worker {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

enum class Phase : uint8_t { kStarting, kTraining, kInferring };

// A handler can only reach globals.
std::atomic<int> requested{0};
std::atomic<Phase> phase{Phase::kStarting};

void Say(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void OnSignal(int signal) {
  switch (phase.load()) {
    case Phase::kStarting:
      Say("\nstopped before the work began: there was nothing to save\n");
      _exit(128 + signal);
    case Phase::kTraining:
      if (requested.exchange(signal) != 0) _exit(128 + signal);
      Say("\nstopping after this step and saving; once more to leave at once\n");
      return;
    case Phase::kInferring:
      if (requested.exchange(signal) != 0) _exit(128 + signal);
      Say("\nstopping after this step; once more to leave at once\n");
      return;
  }
}

}  // namespace

StopSignal::StopSignal() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : kSignals) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
    sigaddset(&ours, number);
  }
  sigprocmask(SIG_UNBLOCK, &ours, nullptr);
}

StopSignal::~StopSignal() {
  for (const int number : kSignals) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler == OnSignal) signal(number, SIG_DFL);
  }
}

void StopSignal::Begin(Work work) {
  signal(SIGPIPE, SIG_IGN);
  phase = work == Work::kTrain ? Phase::kTraining : Phase::kInferring;
}

int StopSignal::Requested() { return requested.load(std::memory_order_relaxed); }

}  // namespace regatta::worker
