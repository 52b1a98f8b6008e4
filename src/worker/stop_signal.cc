#include "worker/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

namespace regatta::worker {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// A handler can only reach globals.
std::atomic<int> requested{0};
std::atomic<const char*> promise{nullptr};  // what the first signal is answered; null before Begin

void WriteToStderr(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void OnSignal(int signal) {
  const char* const said = promise.load();
  if (said == nullptr) {
    WriteToStderr("\nstopped before the work began: there was nothing to save\n");
    _exit(128 + signal);
  }
  if (requested.exchange(signal) != 0) _exit(128 + signal);
  WriteToStderr(said);
}

const char* PromiseOf(StopSignal::Work work) {
  switch (work) {
    case StopSignal::Work::kJoin:
      return "\nstopping; once more to leave at once\n";
    case StopSignal::Work::kTrain:
      return "\nstopping after this step and saving; once more to leave at once\n";
    case StopSignal::Work::kTrainTogether:
      return "\nstopping after this step; worker 0 saves, unless the job has failed; once more to leave at once\n";
    case StopSignal::Work::kInfer:
      break;
  }
  return "\nstopping after this step; once more to leave at once\n";
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
  promise = PromiseOf(work);
}

int StopSignal::Requested() { return requested.load(std::memory_order_relaxed); }

}  // namespace regatta::worker
