// `regatta launch` and `fleetrun`: the launcher, with what the configuration of `train` says about workers that die.
#pragma once

#include "launch/launch_args.h"

namespace regatta::cli {

// argv[0] is skipped. Returns the exit code.
int RunLaunch(launch::Flavour flavour, int argc, const char* const* argv);

}  // namespace regatta::cli
