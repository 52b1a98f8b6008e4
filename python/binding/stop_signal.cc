#include "binding/stop_signal.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

#include "binding/interrupt.h"

namespace regatta::binding {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// A handler can only reach globals.
std::atomic<int> requested{0};
std::atomic<bool> watches{false};
struct sigaction before[std::size(kSignals)];

void OnSignal(int signal) {
  if (requested.exchange(signal) != 0) {
    struct sigaction end {};
    end.sa_handler = SIG_DFL;
    sigaction(signal, &end, nullptr);
    raise(signal);
    return;
  }
  constexpr std::string_view kSaid = "\nstopping after this step and saving; once more to leave at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kSaid.data(), kSaid.size());
}

}  // namespace

StopSignal::StopSignal() : mine_(Interruptible::MainThread() && !watches.exchange(true)) {
  if (!mine_) return;
  requested = 0;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction action {};
    action.sa_handler = &OnSignal;
    sigaction(kSignals[i], nullptr, &before[i]);
    if (kSignals[i] != SIGHUP || before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  if (!mine_) return;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
  watches = false;
}

int StopSignal::Requested() { return requested.load(); }
bool StopSignal::watching() { return watches.load(); }

}  // namespace regatta::binding
