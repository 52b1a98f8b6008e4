#include "wire/connections.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace regatta::wire {
namespace {

constexpr uint64_t kBytesACall = 4 << 10;  // of a stranger that asks for the status or the health again and again
constexpr int kStrangerBuffer = 16 << 10, kMemberBuffer = 128 << 10, kLargeBuffer = 4 << 20;  // the kernel doubles them
constexpr std::chrono::milliseconds kConnectionsPoll(10), kGrowingPoll(2);
constexpr std::chrono::milliseconds kMemberPoll(250);
constexpr uint64_t kGrown = uint64_t{4} << 20;   // memory, since the workers' connections were looked at
constexpr uint64_t kLittle = uint64_t{4} << 20;  // that a lane may hold uncounted
// What HTTP/2 and TLS add to a message: a part of it, and some bytes. Less than it is where several streams share a
// connection: none of them pays for what another one holds.
constexpr uint64_t kAddedPart = 64, kAddedBytes = 256, kAddedShared = 32;
constexpr std::chrono::seconds kQuietLog(10);

void SetReceiveBuffer(int fd, int bytes) { setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); }

// The kernel chooses the buffer again, as it does if nobody has set it.
void LetGrow(int fd) {
  SetReceiveBuffer(fd, kMemberBuffer);
  const int unlocked = 0;
  if (setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &unlocked, sizeof unlocked) == 0) return;
  SetReceiveBuffer(fd, kLargeBuffer);  // Linux before 5.14
}

// The connection is over for both ends, and what the socket has received is dropped. shutdown() would let gRPC read on.
void Reset(int fd) {
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  if (connect(fd, &nowhere, sizeof nowhere) != 0) shutdown(fd, SHUT_RDWR);
}

// What the socket has received since it was opened; none if it is not this connection any more.
std::optional<uint64_t> ReceivedBy(int fd, const std::string& peer) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || PeerKeyOf(fd) != peer) return std::nullopt;
  return info.tcpi_bytes_received;
}

}  // namespace

std::string PeerKey(std::string_view peer) {
  if (peer.starts_with("ipv4:") || peer.starts_with("ipv6:")) peer.remove_prefix(5);
  std::string text =
      absl::StrReplaceAll(std::string(peer), {{"%5B", ""}, {"%5D", ""}, {"%25", "%"}, {"[", ""}, {"]", ""}});
  const size_t zone = text.find('%'), port = text.rfind(':');
  if (zone != std::string::npos && port != std::string::npos && zone < port) text.erase(zone, port - zone);
  return text;
}

std::string PeerKeyOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return absl::StrCat(text, ":", ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
  else
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return absl::StrCat(text, ":", ntohs(v6.sin6_port));
}

bool Connections::Add(int fd) {
  std::string peer = PeerKeyOf(fd);
  if (peer.empty()) return false;
  SetReceiveBuffer(fd, kStrangerBuffer);
  auto added = std::make_shared<Connection>();
  added->fd_ = fd;
  added->peer_ = peer;
  added->since_ = std::chrono::steady_clock::now();
  base::MutexLock lock(mu_);
  connections_[std::move(peer)] = std::move(added);
  const Connection* oldest = nullptr;
  size_t strangers = 0;
  for (const auto& [key, connection] : connections_) {
    if (connection->kind() == Connection::Kind::kMember) continue;
    ++strangers;
    if (oldest == nullptr || connection->since_ < oldest->since_) oldest = connection.get();
  }
  if (strangers > limits_.strangers) CloseLocked(*oldest, "too many connections of strangers");
  return true;
}

std::shared_ptr<Connection> Connections::Find(std::string_view peer) const {
  const std::string key = PeerKey(peer);
  base::MutexLock lock(mu_);
  const auto found = connections_.find(key);
  return found == connections_.end() ? nullptr : found->second;
}

void Connections::Join(Connection& connection, int worker, int lanes) {
  int unnamed = Connection::kUnnamed;
  if (worker != unnamed) connection.worker_.compare_exchange_strong(unnamed, worker, std::memory_order_relaxed);
  for (int most = lanes_; lanes > most && !lanes_.compare_exchange_weak(most, lanes);) {
  }
  const bool joined = !connection.member_.exchange(true, std::memory_order_relaxed);
  if (joined) {
    Grow(connection);
    if (connection.reading_.load(std::memory_order_relaxed) == 0) Settle(connection);
  }
  if (!joined && (worker == Connection::kUnnamed || unnamed != Connection::kUnnamed)) return;
  base::MutexLock lock(mu_);
  CloseSpareLocked(connection.worker_.load(std::memory_order_relaxed));
}

void Connections::CloseSpareLocked(int worker) {
  const size_t most = worker == Connection::kUnnamed
                          ? limits_.unnamed_connections
                          : limits_.worker_connections + limits_.lane_connections * static_cast<size_t>(lanes_.load());
  const Connection* spare = nullptr;
  size_t mine = 0;
  const auto rank = [](const Connection& connection) {
    return std::pair(connection.reading_.load(std::memory_order_relaxed) > 0, connection.since_);
  };
  for (const auto& [peer, connection] : connections_) {
    if (connection->kind() == Connection::Kind::kStranger || connection->worker_ != worker) continue;
    ++mine;
    if (spare == nullptr || rank(*connection) < rank(*spare)) spare = connection.get();
  }
  if (mine > most) CloseLocked(*spare, "its worker has too many connections");
}

bool Connections::BeginCall(Connection& connection) {
  if (connection.kind() == Connection::Kind::kMember) return false;
  const int calls = connection.calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  const int all = strangers_calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (calls <= limits_.stranger_calls && all <= limits_.strangers_calls) return true;
  base::MutexLock lock(mu_);
  // Calls of connections that have been closed are not over yet: they do not count.
  const Connection* largest = nullptr;
  int listed = 0;
  for (const auto& [peer, other] : connections_) {
    const int theirs = other->calls_.load(std::memory_order_relaxed);
    listed += theirs;
    if (largest == nullptr || theirs > largest->calls_) largest = other.get();
    if (other.get() == &connection && calls > limits_.stranger_calls) {
      CloseLocked(connection, "it has too many calls at once");
      return true;
    }
  }
  if (listed > limits_.strangers_calls) CloseLocked(*largest, "strangers have too many calls at once");
  return true;
}

void Connections::EndCall(Connection& connection) {
  connection.calls_.fetch_sub(1, std::memory_order_relaxed);
  strangers_calls_.fetch_sub(1, std::memory_order_relaxed);
}

// A connection that broke may still have replies to a call that the worker repeats: those are given up.
bool Connections::BeginReply(Connection& connection, uint64_t bytes) {
  base::MutexLock lock(mu_);
  if (connection.reply_bytes_ > 0 && connection.reply_bytes_ + bytes > limits_.reply_bytes) return false;
  connection.reply_bytes_ += bytes;
  const int worker = connection.worker_.load(std::memory_order_relaxed);
  List others;
  uint64_t sum = connection.reply_bytes_;
  for (const auto& [peer, other] : connections_) {
    if (other.get() == &connection || other->worker_ != worker || other->reply_bytes_ == 0) continue;
    sum += other->reply_bytes_;
    others.push_back(other);
  }
  std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a->since_ < b->since_; });
  for (size_t i = 0; i < others.size() && sum > limits_.reply_bytes; ++i) {
    sum -= others[i]->reply_bytes_;
    CloseLocked(*others[i], "its worker does not read its replies");
  }
  return true;
}

void Connections::EndReply(Connection& connection, uint64_t bytes) {
  base::MutexLock lock(mu_);
  connection.reply_bytes_ -= bytes;
}

void Connections::EndRead(Connection& connection) {
  if (connection.reading_.fetch_sub(1, std::memory_order_relaxed) > 1) return;
  if (connection.kind() == Connection::Kind::kMember) Settle(connection);
}

void Connections::Settle(Connection& connection) {
  base::MutexLock lock(mu_);
  const auto received = ReceivedBy(connection.fd_, connection.peer_);
  if (!received.has_value()) return;
  connection.base_ = std::max(connection.base_, *received);
  connection.messages_then_ = connection.messages_.load(std::memory_order_relaxed);
  connection.message_bytes_then_ = connection.message_bytes_.load(std::memory_order_relaxed);
}

void Connections::BeginRequest(Connection& connection) {
  connection.requests_.fetch_add(1, std::memory_order_relaxed);
  Grow(connection);
}

void Connections::Grow(Connection& connection) {
  if (connection.grown_.exchange(true, std::memory_order_relaxed)) return;
  base::MutexLock lock(mu_);
  const int copy = dup(connection.fd_);
  if (copy < 0) return;
  if (PeerKeyOf(copy) == connection.peer_) LetGrow(copy);
  close(copy);
}

void Connections::Strike(const Connection& connection) {
  base::MutexLock lock(mu_);
  const auto found = connections_.find(connection.peer_);
  if (found == connections_.end() || found->second.get() != &connection) return;
  Connection& struck = *found->second;
  const auto now = std::chrono::steady_clock::now();
  if (now - struck.struck_ > limits_.window) {
    struck.struck_ = now;
    struck.strikes_ = 0;
  }
  if (++struck.strikes_ >= limits_.strikes) CloseLocked(struck, "too many calls that were refused or cancelled");
}

// gRPC sees that the conversation is over, and closes the descriptor.
void Connections::CloseLocked(const Connection& connection, const char* why) {
  const std::string peer = connection.peer_;
  const int copy = dup(connection.fd_);
  if (copy >= 0) {
    if (PeerKeyOf(copy) == peer) Reset(copy);
    close(copy);
  }
  connections_.erase(peer);
  closed_.fetch_add(1, std::memory_order_relaxed);
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) {
    ++unsaid_;
    return;
  }
  LOG(WARNING) << "closed a connection from " << peer << ": " << why
               << (unsaid_ > 0 ? absl::StrCat(" (and ", unsaid_, " more since the last line)") : "");
  quiet_until_ = now + kQuietLog;
  unsaid_ = 0;
}

// A flood grows the memory by tens of megabytes between two looks of a fixed rhythm. While it does not grow, what is
// received goes where other messages were before.
bool Connections::MembersDueLocked(std::chrono::steady_clock::time_point now) {
  const uint64_t resident = resident_();
  resident_then_ = std::min(resident_then_, resident);
  const bool grown = resident - resident_then_ >= kGrown;
  if (now < members_next_ && !grown) return false;
  if (grown) next_ = now + kGrowingPoll;
  members_next_ = now + kMemberPoll;
  resident_then_ = resident;
  return true;
}

// A message that has come is not held any more. What is added on its way is only about known, so a lane that holds
// little counts as one that holds nothing.
uint64_t Connections::HeldBy(Connection& connection) {
  const uint64_t messages = connection.messages_.load(std::memory_order_relaxed);
  const uint64_t bytes = connection.message_bytes_.load(std::memory_order_relaxed);
  const uint64_t more = messages - std::exchange(connection.messages_then_, messages);
  const uint64_t more_bytes = bytes - std::exchange(connection.message_bytes_then_, bytes);
  const bool shared = connection.reading_.load(std::memory_order_relaxed) > 1;
  const uint64_t paid = more_bytes + more_bytes / kAddedPart + more * (shared ? kAddedShared : kAddedBytes);
  connection.base_ = std::min(connection.bytes_, connection.base_ + paid);
  if (more > 0 && !shared && connection.bytes_ - connection.base_ < kLittle) connection.base_ = connection.bytes_;
  return connection.bytes_ - connection.base_;
}

void Connections::CollectLargest(List mine, uint64_t most, List& out) {
  const auto held = [](const auto& connection) { return connection->bytes_ - connection->base_; };
  uint64_t sum = 0;
  for (const auto& connection : mine) sum += held(connection);
  if (sum <= most) return;
  std::sort(mine.begin(), mine.end(), [&](const auto& a, const auto& b) { return held(a) > held(b); });
  for (size_t i = 0; i < mine.size() && sum > most; ++i) {
    sum -= held(mine[i]);
    out.push_back(mine[i]);
  }
}

std::optional<std::chrono::milliseconds> Connections::EnforceLimits(std::chrono::steady_clock::time_point now) {
  base::MutexLock lock(mu_);
  if (now < next_) return std::chrono::ceil<std::chrono::milliseconds>(next_ - now);
  next_ = now + kConnectionsPoll;
  const bool members = MembersDueLocked(now);
  List gone, greedy, strangers, holding;
  std::map<int, List> of_worker;
  for (const auto& [peer, connection] : connections_) {
    const bool stranger = connection->kind() == Connection::Kind::kStranger;
    if (!stranger && !members) continue;
    const auto received = ReceivedBy(connection->fd_, peer);
    if (!received.has_value()) {
      gone.push_back(connection);
      continue;
    }
    connection->bytes_ = *received;
    if (stranger) {
      strangers.push_back(connection);
      const bool reads = connection->requests_.load(std::memory_order_relaxed) > 0;
      const uint64_t served = connection->served_.load(std::memory_order_relaxed);
      if (*received > limits_.stranger_bytes + kBytesACall * served + (reads ? limits_.request_bytes : 0))
        greedy.push_back(connection);
    } else if (HeldBy(*connection) > limits_.member_bytes) {
      holding.push_back(connection);
    } else {
      of_worker[connection->worker_.load(std::memory_order_relaxed)].push_back(connection);
    }
  }
  for (const auto& connection : gone) connections_.erase(connection->peer_);
  if (greedy.empty()) CollectLargest(std::move(strangers), limits_.strangers_bytes, greedy);
  const uint64_t most = limits_.worker_bytes + limits_.lane_bytes * static_cast<uint64_t>(lanes_.load());
  for (auto& [worker, mine] : of_worker)
    CollectLargest(std::move(mine), worker == Connection::kUnnamed ? limits_.unnamed_bytes : most, holding);
  for (const auto& connection : greedy) CloseLocked(*connection, "it sent too much that is no call of a worker");
  for (const auto& connection : holding)
    CloseLocked(*connection, "its worker sent too much of messages that do not end");
  if (!connections_.empty()) return std::chrono::ceil<std::chrono::milliseconds>(next_ - now);
  return std::nullopt;
}

size_t Connections::size() const {
  base::MutexLock lock(mu_);
  return connections_.size();
}

}  // namespace regatta::wire
