// What a server has done so far. Counting costs a request some relaxed additions; what needs a look at every key is
// done for a few requests only. Thread-safety: all of it is concurrent.
#pragma once

#include <array>
#include <vector>

#include "metrics/counter.h"
#include "metrics/histogram.h"
#include "server/shard_load.h"
#include "wire/frame.h"

namespace regatta::server {

struct Traffic {
  // `lanes` of a worker.
  explicit Traffic(int lanes) : lane_keys(static_cast<size_t>(lanes)), lane_updates(static_cast<size_t>(lanes)) {}

  metrics::Counter pulls;
  metrics::Counter pushes;
  metrics::Counter dense_pulls;
  metrics::Counter dense_pushes;
  metrics::Counter keys_pulled;
  metrics::Counter keys_pushed;
  metrics::Counter bytes_in;
  metrics::Counter bytes_out;
  metrics::Counter refused;  // requests answered with an error

  std::array<metrics::Histogram, ps::Verb_ARRAYSIZE> latency;  // nanoseconds that a request took, by verb
  metrics::Histogram sync_wait;                                // nanoseconds that a pull waited for the steps of others
  metrics::Histogram staleness;                                // updates of its lane between a step's pull and its push
  std::vector<metrics::Counter> lane_keys;                     // pulled and pushed
  std::vector<metrics::Counter> lane_updates;                  // pushes that were applied
  ShardLoad shards;
};

}  // namespace regatta::server
