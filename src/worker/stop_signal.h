// Ctrl+C and SIGTERM: the first asks the run to finish its step, save and end; the second ends the process at once.
// Thread-safety: Requested is concurrent. One at a time: signals belong to the process.
#pragma once

namespace regatta::worker {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The signal that came, or 0.
  static int Requested();
};

}  // namespace regatta::worker
