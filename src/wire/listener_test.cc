#include "wire/listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/mutex.h"

namespace regatta::wire {
namespace {

// Sockets of its own that connect to a listener, and what the listener has accepted.
class ListenerTest : public testing::Test {
 protected:
  void SetUp() override {
    port_ = listener_.Bind("127.0.0.1:0").value();
    ASSERT_TRUE(listener_
                    .Start(
                        [this](int fd) {
                          base::MutexLock lock(mu_);
                          accepted_.push_back(fd);
                        },
                        [] { return false; })
                    .ok());
  }
  void TearDown() override {
    listener_.Stop();
    for (const int fd : accepted()) close(fd);
  }
  std::vector<int> accepted() {
    base::MutexLock lock(mu_);
    return accepted_;
  }
  bool Await(size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (accepted().size() < count && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return accepted().size() >= count;
  }
  void Connect(int fd) const {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << strerror(errno);
  }

  Connections connections_;
  Listener listener_{connections_};
  int port_ = 0;
  base::Mutex mu_;
  std::vector<int> accepted_ ABSL_GUARDED_BY(mu_);
};

TEST_F(ListenerTest, APortThatIsTakenIsNamed) {
  Listener other(connections_);
  const auto port = other.Bind(absl::StrCat("127.0.0.1:", port_));
  EXPECT_TRUE(absl::IsFailedPrecondition(port.status()));
  EXPECT_NE(port.status().message().find(absl::StrCat("127.0.0.1:", port_)), std::string::npos);
}

TEST_F(ListenerTest, EveryConnectionIsHandedOver) {
  std::vector<int> peers;
  for (int i = 0; i < 5; ++i) {
    peers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Connect(peers.back());
  }
  EXPECT_TRUE(Await(peers.size()));
  EXPECT_EQ(connections_.size(), peers.size());
  for (const int peer : peers) close(peer);
}

// A server opens files of its own: logs, saves, /proc.
TEST_F(ListenerTest, AConnectionThatWouldTakeTheLastDescriptorsIsClosed) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_LT(static_cast<rlim_t>(Listener::MostConnections()), limit.rlim_cur);
  Listener none(connections_, 0);
  port_ = none.Bind("127.0.0.1:0").value();
  ASSERT_TRUE(none.Start([](int) { ADD_FAILURE() << "handed over"; }, [] { return false; }).ok());
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  Connect(peer);
  char byte = 0;
  EXPECT_LE(recv(peer, &byte, 1, 0), 0) << "it is closed";
  close(peer);
}

}  // namespace
}  // namespace regatta::wire
