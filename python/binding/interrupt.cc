#include "binding/interrupt.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace regatta::binding {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> depth{0};
std::atomic<bool> interrupted{false};
struct sigaction before[std::size(kSignals)];
bool watched[std::size(kSignals)];

void Note(int signal) {
  interrupted.store(true);
  for (size_t i = 0; i < std::size(kSignals); ++i)
    if (kSignals[i] == signal) before[i].sa_handler(signal);
}

bool MainThread() { return syscall(SYS_gettid) == getpid(); }

}  // namespace

// Only signals that Python handles are watched: the others end the process, or are ignored, as they were.
Interruptible::Interruptible() {
  if (!MainThread()) return;
  watching_ = true;
  if (depth++ > 0) return;
  interrupted.store(false);
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

bool Interruptible::Interrupted() { return interrupted.load(); }

}  // namespace regatta::binding
