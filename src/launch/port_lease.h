// A free port of 127.0.0.1, held by a bound socket as long as the lease lives: the kernel gives it to nobody else, and
// a server, which sets SO_REUSEADDR as gRPC does, can listen on it, die and listen again. Ports outside the kernel's
// range for outgoing connections are preferred. Thread-safety: belongs to one thread.
#pragma once

#include "base/status.h"

namespace regatta::launch {

class PortLease {
 public:
  static absl::StatusOr<PortLease> Take();
  PortLease(PortLease&& other) noexcept;
  PortLease& operator=(PortLease&&) = delete;
  ~PortLease();

  int port() const { return port_; }

 private:
  PortLease(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;
  int port_;
};

}  // namespace regatta::launch
