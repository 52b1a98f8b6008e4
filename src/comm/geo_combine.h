// What servers do with the changes of a geo job.
// Thread-safety: plain values.
#pragma once

#include <cstdint>

namespace regatta::comm {

// kCount is geo. The others are there to be compared with it (bench/e2e/geo_combine.cc).
enum class GeoCombine : uint8_t {
  kCount,  // divide a change by the number of workers that changed the row in the round
  kMean,   // divide it by the number of workers
  kSum     // add it as it is
};

}  // namespace regatta::comm
