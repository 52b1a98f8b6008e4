#include "client/grpc_text.h"

#include "absl/strings/match.h"

namespace regatta::client {
namespace {

constexpr char kRefused[] = "Connection refused";  // strerror(ECONNREFUSED)

}  // namespace

bool SaysRefused(const absl::Status& status) { return absl::StrContains(status.message(), kRefused); }

bool SaysNobody(const absl::Status& status) {
  for (const char* words :
       {kRefused, "No route to host", "Network is unreachable", "Host is down", "DNS", "Deadline Exceeded"})
    if (absl::StrContains(status.message(), words)) return true;
  return false;
}

bool SaysCutOff(const absl::Status& status) {
  return absl::IsCancelled(status) && (status.message().empty() || status.message() == "CANCELLED");
}

}  // namespace regatta::client
