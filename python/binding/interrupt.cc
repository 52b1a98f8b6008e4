#include "binding/interrupt.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "binding/stop_signal.h"

namespace regatta::binding {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> depth{0};
std::atomic<bool> interrupted{false};
std::atomic<int64_t> interrupted_at{0};  // nanoseconds
struct sigaction before[std::size(kSignals)];
bool watched[std::size(kSignals)];

constexpr int64_t kPatience = 1'000'000'000;

int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// The second one does not wait for the first: a call may wait for other workers, which do not know of it.
void Note(int signal) {
  const int64_t now = Now();
  if (interrupted.exchange(true)) {
    struct sigaction end {};
    end.sa_handler = SIG_DFL;
    sigaction(signal, &end, nullptr);
    raise(signal);
    return;
  }
  interrupted_at.store(now);
  constexpr std::string_view kSaid = "\nstopping; once more to leave at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kSaid.data(), kSaid.size());
  for (size_t i = 0; i < std::size(kSignals); ++i)
    if (kSignals[i] == signal) before[i].sa_handler(signal);
}

}  // namespace

// Only signals that Python handles are watched: the others end the process, or are ignored, as they were.
Interruptible::Interruptible() {
  if (!MainThread() || StopSignal::watching()) return;
  watching_ = true;
  if (depth++ > 0) return;
  interrupted.store(false);
  interrupted_at.store(0);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    watched[i] = false;
    if (sigaction(kSignals[i], nullptr, &before[i]) != 0) continue;
    if ((before[i].sa_flags & SA_SIGINFO) != 0 || before[i].sa_handler == SIG_DFL || before[i].sa_handler == SIG_IGN)
      continue;
    struct sigaction note = before[i];
    note.sa_handler = &Note;
    watched[i] = sigaction(kSignals[i], &note, nullptr) == 0;
  }
}

Interruptible::~Interruptible() {
  if (!watching_ || --depth > 0) return;
  for (size_t i = 0; i < std::size(kSignals); ++i)
    if (watched[i]) sigaction(kSignals[i], &before[i], nullptr);
}

bool Interruptible::Interrupted() { return depth.load() > 0 && interrupted.load(); }
bool Interruptible::GivenUp() {
  const int64_t at = interrupted_at.load();
  return Interrupted() && at != 0 && Now() - at > kPatience;
}
bool Interruptible::MainThread() { return syscall(SYS_gettid) == getpid(); }

}  // namespace regatta::binding
