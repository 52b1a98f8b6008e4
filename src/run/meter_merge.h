// Adds up what the workers of a job have counted of a pass.
// Thread-safety: pure functions.
#pragma once

#include <map>
#include <optional>

#include "base/status.h"
#include "run/rounds.h"
#include "train/pass_meter.h"

namespace regatta::run {

// Adds the workers' meters (PassMeter::Serialize, by rank) to `meter`, in the order of ranks, so that all who begin
// with an empty meter get the same sums. `own` is the rank whose counts `meter` has already; nothing = none.
absl::Status MergeMeters(const std::map<int, Bytes>& meters, std::optional<int> own, train::PassMeter& meter);

// The report of all workers' samples, in the time of this worker's own meter.
absl::StatusOr<train::EpochReport> TeamReport(const char* what, const std::map<int, Bytes>& meters,
                                              const train::PassMeter& mine);

}  // namespace regatta::run
