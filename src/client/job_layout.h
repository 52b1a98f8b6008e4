// What follows from a job's description for both planes of a client: which lane has which key, and how wide rows are.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "client/client_options.h"
#include "wire/lanes.h"

namespace regatta::client {

struct JobLayout {
  // INVALID_ARGUMENT names the mode, or the field of a table, that cannot be.
  static absl::StatusOr<JobLayout> Of(const ClientOptions& options);

  wire::LaneMap lanes;
  std::vector<int> pull_widths;  // of each sparse table: floats of a row
  std::vector<int> push_widths;  // the same: floats of a gradient
  int64_t dense_size = 0;
  bool steps_together = false;  // of the job's mode
  bool tracks = false;          // whether pushes say which batches they were learnt from: workers come back
};

}  // namespace regatta::client
