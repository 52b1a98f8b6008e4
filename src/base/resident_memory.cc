#include "base/resident_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace regatta::base {

uint64_t ResidentBytes() {
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128] = "";
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  unsigned long long pages = 0, resident = 0;
  if (got <= 0 || std::sscanf(text, "%llu %llu", &pages, &resident) != 2) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace regatta::base
