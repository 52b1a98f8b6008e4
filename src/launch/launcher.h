// `regatta launch` and `fleetrun` from argv to exit code.
// Thread-safety: call once, from a process with one thread.
#pragma once

#include "launch/launch_args.h"

namespace regatta::launch {

// argv[0] is skipped. Returns the exit code: 2 for wrong usage, 1 where nothing could be started, else the job's.
int Launch(Flavour flavour, int argc, const char* const* argv);

}  // namespace regatta::launch
