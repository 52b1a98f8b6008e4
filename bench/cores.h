// The cores that a benchmark runs on.
#pragma once

#include <glog/logging.h>
#include <sched.h>

namespace regatta::bench {

// The process, and every thread it starts later, runs on the first `cores` cores it may use, from the last one on.
inline void PinTo(int cores) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
  }();
  cpu_set_t some;
  CPU_ZERO(&some);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && cores > 0; --cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &some);
    --cores;
  }
  CHECK_EQ(sched_setaffinity(0, sizeof some, &some), 0);
}

}  // namespace regatta::bench
