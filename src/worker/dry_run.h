// `regatta train --dry-run`: what the run would be, without running it.
#pragma once

#include "base/status.h"
#include "worker/job.h"

namespace regatta::worker {

// Prints the configuration, the tables and their sizes, and the first batch as parsed.
absl::Status DryRun(Job& job);

}  // namespace regatta::worker
