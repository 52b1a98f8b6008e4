// A TCP proxy that is a bad network: it cuts connections, delays and stalls what they carry, and damages it. One
// thread, one poll loop. What it does is drawn from the seed; when, depends on the traffic. Words on stdin: "begin"
// what --calm keeps back, "calm" ends it, "cut" all connections, "refuse" new ones, "accept" them again, "to
// address:port" sends new ones elsewhere. It ends with stdin, and tells on stdout what it did.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/command_line.h"
#include "base/status.h"

namespace regatta::fault {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kChunk = 256 << 10;
constexpr size_t kMostQueued = 8 << 20;  // bytes of a direction that wait; then it is not read

struct Args {
  std::string to;
  uint64_t seed = 1;
  uint64_t cut_bytes = 0;
  double cut_seconds = 0;
  double delay = 0;
  double stall = 0;
  double stall_every = 5;
  uint64_t duplicate_bytes = 0;
  uint64_t flip_bytes = 0;
  bool calm = false;
};

absl::StatusOr<std::string> Parse(int argc, const char* const* argv, Args& args) {
  CLI::App app{"A TCP proxy that is a bad network.", "proxy"};
  app.footer(
      "It prints the port that it listens on. Words on stdin: begin (where it was --calm), calm (again), cut (every "
      "connection), "
      "refuse (new ones), accept (them again), to ADDRESS:PORT (with new ones); it ends with stdin.");
  app.add_option("--to", args.to, "address:port to connect to")->required();
  app.add_option("--seed", args.seed)->capture_default_str();
  app.add_option("--cut_bytes", args.cut_bytes, "cut a connection after so many bytes, on average");
  app.add_option("--cut_seconds", args.cut_seconds, "cut a connection after so many seconds, on average");
  app.add_option("--delay", args.delay, "seconds that everything takes longer, each way");
  app.add_option("--stall", args.stall, "seconds that one direction of a connection stands still now and then");
  app.add_option("--stall_every", args.stall_every, "seconds between stalls, on average")->capture_default_str();
  app.add_option("--duplicate_bytes", args.duplicate_bytes, "send a chunk twice after so many bytes, on average");
  app.add_option("--flip_bytes", args.flip_bytes, "flip a bit after so many bytes, on average");
  app.add_flag("--calm", args.calm, "do nothing of it before the word begin");
  return base::ParseWords(app, argc, argv);
}

absl::Status SetNonBlocking(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) return base::ErrnoStatus("cannot prepare", "a socket");
  return absl::OkStatus();
}

absl::StatusOr<sockaddr_in> ToAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  int port = 0;
  if (colon == std::string::npos || inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 1 || port > 65'535)
    return absl::InvalidArgumentError(absl::StrCat("proxy: --to: '", text, "' is not address:port"));
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

struct Tally {
  uint64_t connections = 0, cuts = 0, stalls = 0, duplicates = 0, flips = 0, refused = 0, bytes = 0;
};

// Bytes on their way from one socket to the other.
struct Direction {
  struct Chunk {
    Clock::time_point due;
    std::string bytes;
    size_t sent = 0;
  };
  int from = -1, to = -1;
  std::deque<Chunk> queue;
  size_t queued = 0;
  bool ended = false;                // `from` has no more
  bool told = false;                 // and `to` knows
  Clock::time_point stalled_till{};  // nothing moves before
};

class Connection {
 public:
  Connection(int client, int server) : client_(client), server_(server) {
    ways_[0].from = ways_[1].to = client;
    ways_[0].to = ways_[1].from = server;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    close(client_);
    close(server_);
  }

  // From now on it is as bad as `args` say.
  void Arm(const Args& args, std::mt19937_64& rng) {
    const auto seconds = [&](double mean) {
      return Clock::now() + ToTime(static_cast<double>(Draw(rng, mean * 1e9)) / 1e9);
    };
    const auto bytes = [&](uint64_t mean) { return carried_ + Draw(rng, static_cast<double>(mean)); };
    delay_ = ToTime(args.delay);
    if (args.cut_bytes > 0) cut_after_ = bytes(args.cut_bytes);
    if (args.cut_seconds > 0) cut_at_ = seconds(args.cut_seconds);
    if (args.stall > 0) stall_at_ = seconds(args.stall_every);
    if (args.duplicate_bytes > 0) duplicate_after_ = bytes(args.duplicate_bytes);
    if (args.flip_bytes > 0) flip_after_ = bytes(args.flip_bytes);
  }

  void Disarm() {
    delay_ = {};
    cut_after_ = duplicate_after_ = flip_after_ = std::nullopt;
    cut_at_ = stall_at_ = std::nullopt;
  }

  static Clock::duration ToTime(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  // What poll should look for, and when to come back at the latest.
  void Want(std::vector<pollfd>& polled, Clock::time_point& wake) const {
    short events[2] = {0, 0};  // of client_, server_
    const auto now = Clock::now();
    for (int i = 0; i < 2; ++i) {
      const Direction& way = ways_[i];
      if (now < way.stalled_till) {
        wake = std::min(wake, way.stalled_till);
        continue;
      }
      if (!way.ended && way.queued < kMostQueued) events[i] |= POLLIN;
      if (way.queue.empty()) continue;
      if (way.queue.front().due <= now)
        events[1 - i] |= POLLOUT;
      else
        wake = std::min(wake, way.queue.front().due);
    }
    if (cut_at_.has_value()) wake = std::min(wake, *cut_at_);
    if (stall_at_.has_value()) wake = std::min(wake, *stall_at_);
    polled.push_back({client_, events[0], 0});
    polled.push_back({server_, events[1], 0});
  }

  // False when the connection is over.
  bool Move(const Args& args, std::mt19937_64& rng, Tally& tally) {
    const auto now = Clock::now();
    if (stall_at_.has_value() && now >= *stall_at_) {
      ways_[rng() % 2].stalled_till = now + ToTime(args.stall);
      stall_at_ = now + ToTime(args.stall + Draw(rng, args.stall_every * 1e9) / 1e9);
      ++tally.stalls;
    }
    if (cut_at_.has_value() && now >= *cut_at_) {
      Cut(rng, tally);
      return false;
    }
    for (Direction& way : ways_) {
      if (now < way.stalled_till) continue;
      if (!Read(way, args, rng, tally)) return false;
      if (cut_after_.has_value() && carried_ >= *cut_after_) {
        Cut(rng, tally);
        return false;
      }
      if (!Write(way, now)) return false;
    }
    return !(ways_[0].told && ways_[1].told);
  }

  // What waits to be sent is lost: a request that never comes, a reply that was on its way.
  void Cut(std::mt19937_64& rng, Tally& tally) {
    ++tally.cuts;
    if (rng() % 2 == 0) return;  // both sides see an end
    const linger reset{1, 0};    // both see a reset
    setsockopt(client_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    setsockopt(server_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }

 private:
  static uint64_t Draw(std::mt19937_64& rng, double mean) {
    return 1 + static_cast<uint64_t>(std::exponential_distribution<double>(1 / mean)(rng));
  }

  bool Read(Direction& way, const Args& args, std::mt19937_64& rng, Tally& tally) {
    if (way.ended || way.queued >= kMostQueued) return true;
    static char buffer[kChunk];
    const ssize_t n = recv(way.from, buffer, sizeof buffer, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) {
      way.ended = true;
      return true;
    }
    std::string bytes(buffer, static_cast<size_t>(n));
    carried_ += bytes.size();
    tally.bytes += bytes.size();
    if (flip_after_.has_value() && carried_ >= *flip_after_) {
      bytes[rng() % bytes.size()] ^= static_cast<char>(1 << rng() % 8);
      flip_after_ = carried_ + Draw(rng, static_cast<double>(args.flip_bytes));
      ++tally.flips;
    }
    const bool twice = duplicate_after_.has_value() && carried_ >= *duplicate_after_;
    if (twice) {
      duplicate_after_ = carried_ + Draw(rng, static_cast<double>(args.duplicate_bytes));
      ++tally.duplicates;
    }
    const auto due = Clock::now() + delay_;
    way.queued += bytes.size() * (twice ? 2 : 1);
    if (twice) way.queue.push_back({due, bytes});
    way.queue.push_back({due, std::move(bytes)});
    return true;
  }

  bool Write(Direction& way, Clock::time_point now) {
    while (!way.queue.empty() && way.queue.front().due <= now) {
      Direction::Chunk& chunk = way.queue.front();
      const ssize_t n = send(way.to, chunk.bytes.data() + chunk.sent, chunk.bytes.size() - chunk.sent, MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      chunk.sent += static_cast<size_t>(n);
      way.queued -= static_cast<size_t>(n);
      if (chunk.sent < chunk.bytes.size()) return true;
      way.queue.pop_front();
    }
    if (way.ended && way.queue.empty() && !std::exchange(way.told, true)) shutdown(way.to, SHUT_WR);
    return true;
  }

  const int client_, server_;
  Direction ways_[2];
  uint64_t carried_ = 0;
  Clock::duration delay_{};
  std::optional<uint64_t> cut_after_, duplicate_after_, flip_after_;
  std::optional<Clock::time_point> cut_at_, stall_at_;
};

class Proxy {
 public:
  Proxy(const Args& args, const sockaddr_in& to) : args_(args), to_(to), rng_(args.seed), armed_(!args.calm) {}

  absl::StatusOr<int> Listen() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 128) != 0 || getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      return base::ErrnoStatus("cannot listen on", "127.0.0.1");
    RETURN_IF_ERROR(SetNonBlocking(listener_));
    RETURN_IF_ERROR(SetNonBlocking(STDIN_FILENO));
    return ntohs(address.sin_port);
  }

  void Run() {
    while (Hear()) {
      std::vector<pollfd> polled{{STDIN_FILENO, POLLIN, 0}, {listener_, POLLIN, 0}};
      auto wake = Clock::now() + std::chrono::seconds(1);
      for (const Connection& connection : connections_) connection.Want(polled, wake);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(wake - Clock::now()).count();
      poll(polled.data(), polled.size(), static_cast<int>(std::max<int64_t>(left, 0)));
      connections_.remove_if([&](Connection& connection) { return !connection.Move(args_, rng_, tally_); });
      Accept();
    }
  }
  const Tally& tally() const { return tally_; }

 private:
  // False at the end of stdin.
  bool Hear() {
    char bytes[256];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n == 0) return false;
    if (n > 0) words_.append(bytes, static_cast<size_t>(n));
    for (size_t end = 0; (end = words_.find('\n')) != std::string::npos; words_.erase(0, end + 1)) {
      const std::string word = words_.substr(0, end);
      if (word.starts_with("to ")) {
        if (const auto to = ToAddress(word.substr(3)); to.ok()) to_ = *to;
      }
      if (word == "refuse" || word == "accept") refusing_ = word == "refuse";
      if (word == "calm") {
        armed_ = false;
        for (Connection& connection : connections_) connection.Disarm();
      }
      if (word == "begin") {
        armed_ = true;
        for (Connection& connection : connections_) connection.Arm(args_, rng_);
      }
      if (word != "cut") continue;
      for (Connection& connection : connections_) connection.Cut(rng_, tally_);
      connections_.clear();
    }
    return true;
  }

  void Accept() {
    for (int client = 0; (client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const int server = refusing_ ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (server < 0 || connect(server, reinterpret_cast<const sockaddr*>(&to_), sizeof to_) != 0 ||
          !SetNonBlocking(client).ok() || !SetNonBlocking(server).ok()) {
        ++tally_.refused;
        const linger reset{1, 0};
        setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(client);
        if (server >= 0) close(server);
        continue;
      }
      ++tally_.connections;
      connections_.emplace_back(client, server);
      if (armed_) connections_.back().Arm(args_, rng_);
    }
  }

  const Args args_;
  sockaddr_in to_;
  std::mt19937_64 rng_;
  int listener_ = -1;
  bool refusing_ = false;
  bool armed_;
  std::string words_;
  std::list<Connection> connections_;
  Tally tally_;
};

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "proxy: error: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  Args args;
  const auto help = Parse(argc, argv, args);
  if (!help.ok()) return Fail(help.status(), 2);
  if (!help->empty()) {
    std::fputs(help->c_str(), stdout);
    return 0;
  }
  const auto to = ToAddress(args.to);
  if (!to.ok()) return Fail(to.status(), 2);
  signal(SIGPIPE, SIG_IGN);
  Proxy proxy(args, *to);
  const auto port = proxy.Listen();
  if (!port.ok()) return Fail(port.status(), 1);
  std::printf("port %d\n", *port);
  std::fflush(stdout);
  proxy.Run();
  const Tally& tally = proxy.tally();
  std::printf("connections %lu cuts %lu stalls %lu duplicates %lu flips %lu refused %lu bytes %lu\n", tally.connections,
              tally.cuts, tally.stalls, tally.duplicates, tally.flips, tally.refused, tally.bytes);
  return 0;
}

}  // namespace
}  // namespace regatta::fault

int main(int argc, char** argv) { return regatta::fault::Main(argc, argv); }
