#include "metrics/process_load.h"

#include <sys/resource.h>

#include "base/resident_memory.h"

namespace regatta::metrics {

uint64_t ResidentBytes() { return base::ResidentBytes(); }

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void CollectProcess(Exposition& out) {
  out.Gauge("regatta_process_resident_bytes", "Memory that the process holds.", static_cast<double>(ResidentBytes()));
  out.Counter("regatta_process_cpu_seconds_total", "CPU time of all threads.", CpuSeconds());
}

}  // namespace regatta::metrics
