#include "wire/grpc_log.h"

#include <glog/logging.h>
#include <google/protobuf/stubs/common.h>
#include <grpc/support/log.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/printable.h"

namespace regatta::wire {
namespace {

constexpr std::chrono::seconds kQuiet(10);

struct LogSite {
  std::chrono::steady_clock::time_point quiet_until;
  uint64_t unsaid = 0;
};

// A place in a library's code says something.
void LogLine(const char* library, const char* file, int line, google::LogSeverity severity,
             const std::string& message) {
  static base::Mutex* const mu = new base::Mutex;
  static auto* const places = new std::map<std::pair<std::string, int>, LogSite>;
  std::string more;
  {
    base::MutexLock lock(*mu);
    LogSite& place = (*places)[{file, line}];
    const auto now = std::chrono::steady_clock::now();
    if (now < place.quiet_until) {
      ++place.unsaid;
      return;
    }
    if (place.unsaid > 0) more = absl::StrCat(" (and ", place.unsaid, " like it since the last line)");
    place = {now + kQuiet, 0};
  }
  google::LogMessage(file, line, severity).stream() << library << ": " << base::Printable(message) << more;
}

// Errors are of the peer's, mostly.
void LogGrpcLine(gpr_log_func_args* said) {
  const bool error = said->severity == GPR_LOG_SEVERITY_ERROR;
  LogLine("gRPC", said->file, said->line, error ? google::GLOG_WARNING : google::GLOG_INFO, said->message);
}

#if GOOGLE_PROTOBUF_VERSION < 4022000  // later ones write through abseil
void LogProtobufLine(google::protobuf::LogLevel level, const char* file, int line, const std::string& message) {
  const bool error = level >= google::protobuf::LOGLEVEL_WARNING;
  LogLine("protobuf", file, line, error ? google::GLOG_WARNING : google::GLOG_INFO, message);
}
#endif

}  // namespace

void LogThroughGlog() {
  gpr_set_log_function(&LogGrpcLine);
#if GOOGLE_PROTOBUF_VERSION < 4022000
  google::protobuf::SetLogHandler(&LogProtobufLine);
#endif
}

}  // namespace regatta::wire
