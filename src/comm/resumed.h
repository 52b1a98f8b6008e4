// Where a communicator goes on whose worker takes the place of one that died.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/step.h"

namespace regatta::comm {

struct Resumed {
  uint64_t pass = 0;                      // that it was in
  uint64_t step = 0;                      // the servers' step behind what all lanes have
  std::vector<base::DataPosition> dense;  // of the pass, what each server's dense parameters have learnt
};

}  // namespace regatta::comm
