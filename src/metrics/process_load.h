// What the kernel says of this process.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "metrics/exposition.h"

namespace regatta::metrics {

uint64_t ResidentBytes();  // of memory
double CpuSeconds();       // of all threads, since the process began

// regatta_process_*.
void CollectProcess(Exposition& out);

}  // namespace regatta::metrics
