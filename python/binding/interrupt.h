// Ctrl+C while C++ waits. Python's own handler only notes a signal and runs later, when the interpreter goes on, which
// a wait without a limit would never let it. While an Interruptible lives, its handlers note the signal too and then
// call Python's: the wait asks Interrupted(), ends with CANCELLED, and Raise() lets Python say what the signal means. A
// step that waits for other workers has a second to end well, then the job is given up. The second signal ends the
// process.
// Thread-safety: made and destroyed by the main thread (in others it does nothing); Interrupted is concurrent.
#pragma once

#include <csignal>

namespace regatta::binding {

class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  static bool Interrupted();  // one that lives
  // Whether one lives that was interrupted more than a second ago.
  static bool GivenUp();
  static bool MainThread();

 private:
  bool watching_ = false;
};

}  // namespace regatta::binding
