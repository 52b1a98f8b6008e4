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

#include "base/job_policy.h"
#include "base/mode.h"
#include "client/server_address.h"
#include "cluster/credentials.h"
#include "comm/geo_combine.h"
#include "table/push_options.h"
#include "table/table_config.h"

namespace regatta::fleet {

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
  base::Mode mode = base::Mode::kAsync;
  int sparse_lanes = 1;         // to each server
  bool short_rows = false;      // sync, async, half_async: bfloat16 on the wire while training
  uint64_t staleness = 4;       // async, half_async: pushes of a thread that are not acknowledged
  int half_async_merge = 4;     // batches of one push
  uint64_t geo_interval = 400;  // the most batches between two exchanges
  comm::GeoCombine geo_combine = comm::GeoCombine::kCount;
  base::LossPolicy on_loss = base::LossPolicy::kFail;  // kAwait: servers with a data_dir
  std::chrono::seconds worker_wait{600};               // kAwait: for one that is away
  std::optional<base::Ack> ack;                        // nothing: logged if a server has a data_dir, else memory
  std::map<std::string, std::string> settings;         // further ones of the run in which workers must not differ
  std::optional<std::chrono::duration<double>> wait_timeout;  // for the others; nothing = 600 s
  std::function<bool()> cancelled = [] { return false; };     // asked while it waits for servers and other workers
  // Asked now and then. Once it says so, pulls and pushes under way and all later ones fail with CANCELLED: for a step
  // that waits for other workers without an end.
  std::function<bool()> given_up = [] { return false; };
};

}  // namespace regatta::fleet
