// Ctrl+C, SIGTERM and SIGHUP (a lost terminal; left alone where it is ignored) while a session trains: the first asks
// the session to finish its step, save and end; the second ends the process at once. While one lives, waits are not
// interrupted (interrupt.h): a stop is for all workers together, at the same step.
// Thread-safety: made and destroyed by the main thread (in others it does nothing); Requested is concurrent. One at a
// time.
#pragma once

namespace regatta::binding {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The signal that came since one was made, or 0.
  static int Requested();
  static bool watching();

 private:
  bool mine_ = false;
};

}  // namespace regatta::binding
