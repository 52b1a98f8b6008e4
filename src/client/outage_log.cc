#include "client/outage_log.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_format.h"

namespace regatta::client {
namespace {

constexpr std::chrono::milliseconds kShort(500);
constexpr std::chrono::seconds kEvery(5);

}  // namespace

void OutageLog::LogIfDue(std::chrono::duration<double> waited, std::chrono::duration<double> timeout) {
  if (waited < kShort) return;
  {
    base::MutexLock lock(mu_);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + kEvery;
  }
  LOG(WARNING) << absl::StrFormat("%s has been away for %.1f s; waiting %.0f s more for it to come back", server_,
                                  waited.count(), std::max(0.0, (timeout - waited).count()));
}

}  // namespace regatta::client
