// The memory that pushes of one worker take on this server until they are applied: frames of pushes that are not whole,
// and in sync the parts of steps that wait for other workers. The limit is for all lanes of a worker together.
// Thread-safety: a PushMemory is concurrent; a HeldMemory belongs to the owner of the bytes.
// Invariant: used() is the sum of the bytes of all its HeldMemory objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"

namespace regatta::server {

// A request comes from a worker, or from a record of the lane's log. What is in the log was accepted when it came.
enum class RequestOrigin : uint8_t { kWorker, kLog };

class PushMemory {
 public:
  static constexpr uint64_t kDefaultLimit = uint64_t{128} << 20;
  PushMemory(int rank, uint64_t limit) : rank_(rank), limit_(limit) {}

  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  void SetLimit(uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

 private:
  friend class HeldMemory;
  const int rank_;
  std::atomic<uint64_t> limit_;
  std::atomic<uint64_t> used_{0};
};

// Some bytes of a worker's PushMemory, given back when it is destroyed.
class HeldMemory {
 public:
  HeldMemory() = default;
  HeldMemory(HeldMemory&& other) noexcept
      : of_(std::move(other.of_)), bytes_(std::exchange(other.bytes_, uint64_t{0})) {}
  HeldMemory& operator=(HeldMemory&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(bytes_, other.bytes_);
    other.Release();
    return *this;
  }
  ~HeldMemory() { Release(); }

  // Holds `bytes` of `memory` from now on, in place of what it held. RESOURCE_EXHAUSTED, and nothing changes, if that
  // is more than a worker's request may hold; what the log has is held in any case.
  absl::Status Hold(const std::shared_ptr<PushMemory>& memory, uint64_t bytes, RequestOrigin origin);
  void Release();

 private:
  std::shared_ptr<PushMemory> of_;
  uint64_t bytes_ = 0;
};

}  // namespace regatta::server
