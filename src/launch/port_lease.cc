#include "launch/port_lease.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <utility>

namespace regatta::launch {
namespace {

constexpr int kLowest = 10'000;  // below are the well-known services of a machine
constexpr int kTries = 200;

// The first port that the kernel gives to outgoing connections.
int FirstOutgoingPort() {
  int first = 32'768, last = 0;
  if (FILE* file = std::fopen("/proc/sys/net/ipv4/ip_local_port_range", "re"); file != nullptr) {
    if (std::fscanf(file, "%d %d", &first, &last) != 2) first = 32'768;
    std::fclose(file);
  }
  return first;
}

// A socket bound to 127.0.0.1:port (0: any), or -1. SO_REUSEADDR comes after the bind: a port that lingers is not free,
// but one that is held may be listened on by whoever sets it too.
int Bind(int port, int& bound) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int on = 1;
  if (bind(fd, generic, size) != 0 || getsockname(fd, generic, &size) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
    close(fd);
    return -1;
  }
  bound = ntohs(address.sin_port);
  return fd;
}

}  // namespace

absl::StatusOr<PortLease> PortLease::Take() {
  const int end = FirstOutgoingPort();
  int port = 0;
  if (end > kLowest + 1'000) {
    std::random_device random;
    std::uniform_int_distribution<int> choose(kLowest, end - 1);
    for (int i = 0; i < kTries; ++i)
      if (const int fd = Bind(choose(random), port); fd >= 0) return PortLease(fd, port);
  }
  const int fd = Bind(0, port);
  if (fd < 0) return base::ErrnoStatus("cannot find a free port on", "127.0.0.1");
  return PortLease(fd, port);
}

PortLease::PortLease(PortLease&& other) noexcept : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

PortLease::~PortLease() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace regatta::launch
