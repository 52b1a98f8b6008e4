// The memory that this process holds, as the kernel counts it.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

namespace regatta::base {

uint64_t ResidentBytes();  // 0 if the kernel does not tell

}  // namespace regatta::base
