#include "metrics/exporter.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/match.h"

namespace regatta::metrics {
namespace {

int Dial(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const timeval timeout{10, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  return fd;
}

// Everything that comes until the other end closes.
std::string Hear(int fd) {
  std::string all;
  char bytes[4096];
  for (ssize_t n = 0; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) all.append(bytes, static_cast<size_t>(n));
  close(fd);
  return all;
}

std::string Ask(int port, const std::string& request) {
  const int fd = Dial(port);
  send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  return Hear(fd);
}

constexpr char kGet[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

class ExporterTest : public testing::Test {
 protected:
  ExporterTest() {
    auto started = Exporter::Start(0, [this](Exposition& out) {
      ++collected_;
      out.Counter("regatta_x_total", "How many x.", 42);
    });
    EXPECT_TRUE(started.ok()) << started.status();
    exporter_ = *std::move(started);
  }
  std::atomic<int> collected_{0};
  std::unique_ptr<Exporter> exporter_;
};

TEST_F(ExporterTest, AnswersGetWithTheText) {
  const std::string answer = Ask(exporter_->port(), kGet);
  const std::string body = "# HELP regatta_x_total How many x.\n# TYPE regatta_x_total counter\nregatta_x_total 42\n";
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, "Content-Type: text/plain; version=0.0.4")) << answer;
  EXPECT_TRUE(absl::StrContains(answer, absl::StrCat("Content-Length: ", body.size(), "\r\n"))) << answer;
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\n" + body)) << answer;
  EXPECT_EQ(exporter_->url(), absl::StrCat("http://127.0.0.1:", exporter_->port(), "/metrics"));
}

TEST_F(ExporterTest, RefusesWhatItDoesNotServe) {
  EXPECT_TRUE(absl::StartsWith(Ask(exporter_->port(), "GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "));
  EXPECT_TRUE(absl::StartsWith(Ask(exporter_->port(), "POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 "));
  EXPECT_TRUE(absl::StartsWith(Ask(exporter_->port(), "\r\n\r\n"), "HTTP/1.1 405 "));
  EXPECT_TRUE(absl::StartsWith(Ask(exporter_->port(), std::string(10'000, 'x')), "HTTP/1.1 431 "));
  EXPECT_EQ(collected_, 0);
  const std::string head = Ask(exporter_->port(), "HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(head, "\r\n\r\n")) << head;
  EXPECT_TRUE(absl::StartsWith(Ask(exporter_->port(), "GET /metrics?a=b HTTP/1.0\n\n"), "HTTP/1.1 200 "));
}

TEST_F(ExporterTest, ARequestMayComeInPieces) {
  const int fd = Dial(exporter_->port());
  for (const char c : std::string(kGet)) ASSERT_EQ(send(fd, &c, 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(absl::StartsWith(Hear(fd), "HTTP/1.1 200 "));
}

TEST_F(ExporterTest, SilentConnectionsHoldNobodyUp) {
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(Dial(exporter_->port()));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::StartsWith(Ask(exporter_->port(), kGet), "HTTP/1.1 200 "));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  exporter_.reset();  // and ends at once all the same
  for (const int fd : silent) close(fd);
}

// More than it keeps open, and than it would serve one after the other before they time out.
TEST_F(ExporterTest, WhoAsksIsServedWhileManyAreSilent) {
  std::vector<int> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(Dial(exporter_->port()));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(absl::StartsWith(Ask(exporter_->port(), kGet), "HTTP/1.1 200 ")) << i;
  int closed = 0;  // the first ones, for those that came later
  for (const int fd : silent) {
    char byte = 0;
    closed += recv(fd, &byte, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
    close(fd);
  }
  EXPECT_GE(closed, 200);
}

// Clients that ask and stay do not make newcomers push each other out.
TEST_F(ExporterTest, WhoAsksIsServedWhileManyHaveAskedAndStay) {
  std::vector<int> others;
  for (int i = 0; i < 64; ++i) {
    others.push_back(Dial(exporter_->port()));
    ASSERT_GT(send(others.back(), kGet, sizeof kGet - 1, MSG_NOSIGNAL), 0);
    char byte = 0;
    ASSERT_EQ(recv(others.back(), &byte, 1, 0), 1);
  }
  const int scraper = Dial(exporter_->port());
  for (int i = 0; i < 20; ++i) others.push_back(Dial(exporter_->port()));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until all are accepted
  send(scraper, kGet, sizeof kGet - 1, MSG_NOSIGNAL);
  EXPECT_TRUE(absl::StartsWith(Hear(scraper), "HTTP/1.1 200 "));
  for (const int fd : others) close(fd);
}

TEST_F(ExporterTest, APortInUseIsNamed) {
  const auto second = Exporter::Start(exporter_->port(), [](Exposition&) {});
  ASSERT_FALSE(second.ok());
  EXPECT_TRUE(absl::StrContains(second.status().message(), absl::StrCat("127.0.0.1:", exporter_->port())))
      << second.status();
}

TEST_F(ExporterTest, ThePortIsFreeAgainAtOnce) {
  const int port = exporter_->port();
  Ask(port, kGet);
  exporter_.reset();
  const auto again = Exporter::Start(port, [](Exposition&) {});
  EXPECT_TRUE(again.ok()) << again.status();
}

}  // namespace
}  // namespace regatta::metrics
