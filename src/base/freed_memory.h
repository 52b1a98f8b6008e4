// What malloc does with memory that is freed. By default it gives large blocks back to the system at once, and each new
// frame or tensor of half a megabyte pays for its pages again.
// Thread-safety: call once, before threads start.
#pragma once

#include <malloc.h>

namespace regatta::base {

inline void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2000 << 20);
}

}  // namespace regatta::base
