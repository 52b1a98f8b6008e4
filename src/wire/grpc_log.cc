#include "wire/grpc_log.h"

#include <glog/logging.h>
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

struct Place {
  std::chrono::steady_clock::time_point quiet_until;
  uint64_t unsaid = 0;
};

google::LogSeverity SeverityOf(gpr_log_severity severity) {
  return severity == GPR_LOG_SEVERITY_ERROR ? google::GLOG_WARNING
                                            : google::GLOG_INFO;  // an error of the peer's, mostly
}

void Write(gpr_log_func_args* said) {
  static base::Mutex* const mu = new base::Mutex;
  static auto* const places = new std::map<std::pair<std::string, int>, Place>;
  std::string more;
  {
    base::MutexLock lock(*mu);
    Place& place = (*places)[{said->file, said->line}];
    const auto now = std::chrono::steady_clock::now();
    if (now < place.quiet_until) {
      ++place.unsaid;
      return;
    }
    if (place.unsaid > 0) more = absl::StrCat(" (and ", place.unsaid, " like it since the last line)");
    place = {now + kQuiet, 0};
  }
  google::LogMessage(said->file, said->line, SeverityOf(said->severity)).stream()
      << "gRPC: " << base::Printable(said->message) << more;
}

}  // namespace

void LogThroughGlog() { gpr_set_log_function(&Write); }

}  // namespace regatta::wire
