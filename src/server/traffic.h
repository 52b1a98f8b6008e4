// What a server has done so far.
// Thread-safety: counters are concurrent.
#pragma once

#include "metrics/counter.h"

namespace regatta::server {

struct Traffic {
  metrics::Counter pulls;
  metrics::Counter pushes;
  metrics::Counter dense_pulls;
  metrics::Counter dense_pushes;
  metrics::Counter keys_pulled;
  metrics::Counter keys_pushed;
  metrics::Counter bytes_in;
  metrics::Counter bytes_out;
  metrics::Counter refused;  // requests answered with an error
};

}  // namespace regatta::server
