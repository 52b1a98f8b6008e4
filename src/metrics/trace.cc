#include "metrics/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_format.h"
#include "base/file.h"

namespace regatta::metrics {

void Tracer::Add(const char* name, std::chrono::steady_clock::time_point begin,
                 std::chrono::steady_clock::time_point end) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  const Span span{name, static_cast<int64_t>(syscall(SYS_gettid)), Microseconds(begin - start_).count(),
                  Microseconds(end - begin).count()};
  base::MutexLock lock(mu_);
  spans_.push_back(span);
}

std::vector<Tracer::Span> Tracer::Spans() const {
  base::MutexLock lock(mu_);
  return {spans_.begin(), spans_.end()};
}

absl::Status Tracer::Write(const std::string& path) const {
  std::string json = "{\"traceEvents\":[";
  const char* separator = "\n";
  for (const Span& span : Spans()) {
    absl::StrAppendFormat(&json, "%s{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f}",
                          separator, span.name, getpid(), span.thread, span.begin_us, span.duration_us);
    separator = ",\n";
  }
  json += "\n]}\n";
  return base::WriteFileAtomically(path, json);
}

}  // namespace regatta::metrics
