#include "worker/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace regatta::worker {
namespace {

// A handler can only reach a global.
std::atomic<int> requested{0};

void OnSignal(int signal) {
  if (requested.exchange(signal) != 0) _exit(128 + signal);
  constexpr char kMessage[] = "\nstopping after this step and saving; once more to leave at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
}

}  // namespace

StopSignal::StopSignal() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

StopSignal::~StopSignal() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

int StopSignal::Requested() { return requested.load(std::memory_order_relaxed); }

}  // namespace regatta::worker
