#include "launch/port_lease.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <vector>

namespace regatta::launch {
namespace {

enum class Reuse { kNo, kYes };

bool CanListen(int port, Reuse reuse) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = reuse == Reuse::kYes ? 1 : 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
  close(fd);
  return ok;
}

TEST(PortLease, PortsAreDifferentAndHeldForWhoReusesAddresses) {
  std::vector<PortLease> leases;
  std::set<int> ports;
  for (int i = 0; i < 50; ++i) {
    auto lease = PortLease::Take();
    ASSERT_TRUE(lease.ok()) << lease.status();
    ports.insert(lease->port());
    leases.push_back(*std::move(lease));
  }
  EXPECT_EQ(ports.size(), 50u);
  for (const PortLease& lease : leases) {
    EXPECT_FALSE(CanListen(lease.port(), Reuse::kNo));
    EXPECT_TRUE(CanListen(lease.port(), Reuse::kYes));
    EXPECT_TRUE(CanListen(lease.port(), Reuse::kYes)) << "a server that comes back";
  }
  leases.clear();
  for (const int port : ports) EXPECT_TRUE(CanListen(port, Reuse::kNo));
}

}  // namespace
}  // namespace regatta::launch
