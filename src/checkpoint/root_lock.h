// The lock on a save root: one process writes there. Held from Acquire to destruction; the kernel drops it with the
// process, however that ends.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace regatta::checkpoint {

class RootLock {
 public:
  // FAILED_PRECONDITION names the process that holds it.
  static absl::StatusOr<RootLock> Acquire(const std::string& root);
  ~RootLock();
  RootLock(RootLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RootLock& operator=(RootLock&&) = delete;

 private:
  explicit RootLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace regatta::checkpoint
