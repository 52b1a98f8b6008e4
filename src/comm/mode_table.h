// Makes the communicator of a mode. base/mode.h has the modes' names and traits, mode_table.cc how each is made.
// Thread-safety: plain values and a pure function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/mode.h"
#include "base/status.h"
#include "client/ps_client.h"
#include "comm/agree.h"
#include "comm/communicator.h"
#include "comm/geo_combine.h"
#include "comm/resumed.h"
#include "table/push_options.h"
#include "table/table_config.h"

namespace regatta::comm {

// What communicators are made of. A mode reads what it needs.
struct CommunicatorOptions {
  table::ModelConfig tables;
  int threads = 1;
  int workers = 1;
  uint64_t first_step = 0;      // the servers' next step: 0, or where a resumed run goes on
  uint64_t staleness = 4;       // pushes of a thread that are not acknowledged
  int half_async_merge = 4;     // batches of one push
  uint64_t geo_interval = 400;  // the most batches between two exchanges
  GeoCombine geo_combine = GeoCombine::kCount;
  table::NanPolicy nan_policy = table::NanPolicy::kSkip;
  Agree agree;
  std::optional<Resumed> resumed;
};

// `client` outlives the communicator.
absl::StatusOr<std::unique_ptr<Communicator>> MakeCommunicator(base::Mode mode, client::PsClient& client,
                                                               const CommunicatorOptions& options);

}  // namespace regatta::comm
