// The job that workers bring: its wire form checked and parsed, and the fields in which two differ.
// Thread-safety: plain values and pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/journal.h"
#include "server/roster.h"
#include "table/push_options.h"
#include "table/table_config.h"
#include "wire/lanes.h"
#include "wire/ps.pb.h"

namespace regatta::server {

enum class Mode : uint8_t { kSync, kAsync, kHalfAsync, kGeo };
const char* Name(Mode mode);

struct JobSpec {
  Mode mode = Mode::kAsync;
  int workers = 1;
  wire::LaneMap lanes;
  table::ModelConfig tables;
  table::NanPolicy nan_policy = table::NanPolicy::kSkip;
  LossPolicy loss_policy = LossPolicy::kFail;
  Ack ack = Ack::kDefault;
  std::chrono::seconds worker_wait{600};  // LossPolicy::kAwait
};

// INVALID_ARGUMENT names the field that cannot be.
absl::StatusOr<JobSpec> ParseJobSpec(const ps::JobSpec& spec);

// "tables.sparse.0.dim: 9 here, 16 there" for every field in which they differ; at most a dozen.
std::vector<std::string> Differences(const ps::JobSpec& here, const ps::JobSpec& there);

}  // namespace regatta::server
