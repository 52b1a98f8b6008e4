// What the command line and runner.security.* say about access to other machines: flags go before the configuration.
// Thread-safety: a pure function; the Config belongs to one thread.
#pragma once

#include "base/config.h"
#include "base/status.h"
#include "cluster/access.h"
#include "settings/train_args.h"

namespace regatta::settings {

// Paths of the configuration are made absolute against its folder; nothing is opened.
absl::StatusOr<cluster::Access> ReadSecurity(base::Config& config, const TrainArgs& args);

}  // namespace regatta::settings
