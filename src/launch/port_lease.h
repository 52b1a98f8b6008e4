// A free port of 127.0.0.1, held by a bound socket until the process that will listen on it is about to start.
// Ports outside the kernel's range for outgoing connections are preferred: nobody is given one of those by accident in
// the moment between Release and the child's own bind.
// Thread-safety: belongs to one thread.
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
  // Gives the port back; afterwards anyone may bind it.
  void Release();

 private:
  PortLease(int fd, int port) : fd_(fd), port_(port) {}

  int fd_;
  int port_;
};

}  // namespace regatta::launch
