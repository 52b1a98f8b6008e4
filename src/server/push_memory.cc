#include "server/push_memory.h"

#include "absl/strings/str_cat.h"

namespace regatta::server {

absl::Status HeldMemory::Hold(const std::shared_ptr<PushMemory>& memory, uint64_t bytes, RequestOrigin origin) {
  if (of_ != memory) Release();
  of_ = memory;
  const uint64_t before = memory->used_.fetch_add(bytes - bytes_, std::memory_order_relaxed);  // wraps where it is less
  const uint64_t now = before + (bytes - bytes_);
  const uint64_t limit = memory->limit_.load(std::memory_order_relaxed);
  if (origin == RequestOrigin::kWorker && bytes > bytes_ && now > limit) {
    memory->used_.fetch_sub(bytes - bytes_, std::memory_order_relaxed);
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", memory->rank_, " would hold ", now, " bytes of pushes that are not applied yet on this ",
        "server, and may hold ", limit, ": use smaller batches or more servers, or start the ",
        "servers with a larger --push_memory (REGATTA_PUSH_MEMORY)"));
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

void HeldMemory::Release() {
  if (of_ != nullptr) of_->used_.fetch_sub(std::exchange(bytes_, uint64_t{0}), std::memory_order_relaxed);
  of_ = nullptr;
}

}  // namespace regatta::server
