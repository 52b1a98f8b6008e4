// What a worker brings to its job: its tables, the mode, and how long it waits.
// Thread-safety: plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/server_address.h"
#include "cluster/credentials.h"
#include "comm/geo_combine.h"
#include "table/push_options.h"
#include "table/table_config.h"

namespace regatta::fleet {

// What a server has done when it acknowledges a push; kAuto: kLogged where it has a data_dir, kMemory where not.
enum class Ack : uint8_t { kAuto, kMemory, kLogged, kSynced };

// When a worker dies: the job ends, the others go on without it, or they wait for a process that takes its place.
enum class OnLoss : uint8_t { kFail, kShrink, kAwait };

enum class Mode : uint8_t { kSync, kAsync, kHalfAsync, kGeo };
const char* Name(Mode mode);

struct WorkerOptions {
  // The place. Fleet::InitWorker fills it in.
  std::vector<client::ServerAddress> servers;
  int rank = 0;
  int workers = 1;
  std::shared_ptr<const cluster::Credentials> credentials;  // null: none

  table::ModelConfig tables;
  int threads = 1;
  table::NanPolicy nan_policy = table::NanPolicy::kSkip;

  // With servers only.
  Mode mode = Mode::kAsync;
  int sparse_lanes = 1;         // to each server
  bool short_rows = false;      // sync, async, half_async: bfloat16 on the wire while training
  uint64_t staleness = 4;       // async, half_async: pushes of a thread that are not acknowledged
  int half_async_merge = 4;     // batches of one push
  uint64_t geo_interval = 400;  // the most batches between two exchanges
  comm::GeoCombine geo_combine = comm::GeoCombine::kCount;
  OnLoss on_loss = OnLoss::kFail;         // kAwait: servers with a data_dir
  std::chrono::seconds worker_wait{600};  // kAwait: for one that is away
  Ack ack = Ack::kAuto;
  std::map<std::string, std::string> settings;  // further ones of the run in which workers must not differ
  std::optional<std::chrono::duration<double>> wait_timeout;  // for the others; nothing = 600 s
  std::function<bool()> cancelled = [] { return false; };     // asked while it waits
};

}  // namespace regatta::fleet
