// `regatta launch` and `fleetrun` from argv to exit code.
// Thread-safety: call once, from a process with one thread.
#pragma once

#include "launch/launch_args.h"
#include "launch/worker_loss.h"

namespace regatta::launch {

// argv[0] is skipped; `read_loss` is asked where the command trains. Returns the exit code: 2 for wrong usage, 1 where
// nothing could be started, else the job's.
int Launch(Flavour flavour, int argc, const char* const* argv, const ReadWorkerLoss& read_loss);

}  // namespace regatta::launch
