// Ctrl+C, SIGTERM and SIGHUP (a lost terminal; left alone where nohup has it ignored). While the program starts a
// signal ends it at once: there is nothing to save. From Begin on the first asks the run to finish its step, save and
// end; the second ends the process at once. Who sent it is not known: with servers it may be a launcher that ends a job
// which has failed and cannot be saved any more. Thread-safety: Requested is concurrent. One at a time: signals belong
// to the process.
#pragma once

#include <cstdint>

namespace regatta::worker {

class StopSignal {
 public:
  enum class Work : uint8_t {
    kJoin,           // waiting for servers and workers: there is nothing to save
    kTrain,          // alone
    kTrainTogether,  // with servers
    kInfer,
  };

  // Also lets the signals through that came while the program was loaded: `regatta` blocks them before it starts this
  // one (cli/worker_command.cc).
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // This is what a signal stops from now on, and a closed pipe is an error, not an end.
  static void Begin(Work work);
  // The signal that came since, or 0.
  static int Requested();
};

}  // namespace regatta::worker
