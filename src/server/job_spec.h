// The job that workers bring: its wire form checked and parsed, and the fields in which two differ.
// Thread-safety: plain values and pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/job_policy.h"
#include "base/mode.h"
#include "base/status.h"
#include "table/push_options.h"
#include "table/table_config.h"
#include "wire/lanes.h"
#include "wire/ps.pb.h"

namespace regatta::server {

struct JobSpec {
  base::Mode mode = base::Mode::kAsync;
  int workers = 1;
  wire::LaneMap lanes;
  table::ModelConfig tables;
  table::NanPolicy nan_policy = table::NanPolicy::kSkip;
  base::LossPolicy loss_policy = base::LossPolicy::kFail;
  std::optional<base::Ack> ack;           // nothing: logged if the server has a data_dir, else memory
  std::chrono::seconds worker_wait{600};  // LossPolicy::kAwait

  const base::ModeTraits& traits() const { return base::TraitsOf(mode); }
};

// INVALID_ARGUMENT names the field that cannot be.
absl::StatusOr<JobSpec> ParseJobSpec(const ps::JobSpec& spec);

// INVALID_ARGUMENT if a part of it is too long to be looked at. Cheap.
absl::Status CheckSize(const ps::JobSpec& spec);

// "tables.sparse.0.dim: 9 here, 16 there" for every field in which they differ; at most a dozen. `there` is a
// stranger's, has passed CheckSize, and costs time and memory in proportion to its bytes; its tables are read only if
// they are about as large as those here.
std::vector<std::string> Differences(const ps::JobSpec& here, const ps::JobSpec& there);

}  // namespace regatta::server
