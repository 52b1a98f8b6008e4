// The connections of a server, and what each of them has done. A stranger, on whose connection no worker of the job has
// been heard yet, may send a few bytes, there are so many strangers and no more, and a connection whose calls are
// refused or cancelled again and again is closed. A worker has so many connections, which together hold so many bytes
// of messages that are not whole, and of replies that it has not read. gRPC 1.51 knows none of these limits.
// Thread-safety: all methods are concurrent.
// Invariant: a descriptor belongs to gRPC, which may close it at any time. It is used only through a copy whose peer
// has been compared, so that no other connection is ever closed. A stranger's socket receives little at a time, so that
// gRPC reads little of it at once.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/resident_memory.h"

namespace regatta::wire {

struct ConnectionLimits {
  size_t strangers = 512;                         // connections; over it the oldest of them is closed
  uint64_t stranger_bytes = uint64_t{1} << 20;    // that one may send; and kBytesACall with every call that was served
  uint64_t request_bytes = uint64_t{36} << 20;    // besides, while a request of it is read that may be large
  uint64_t strangers_bytes = uint64_t{48} << 20;  // that all of them may send
  // Bytes that were received and belong to no message that has been read:
  uint64_t member_bytes = uint64_t{80} << 20;  // of a worker's connection
  // Of all connections of a worker: a frame of the dense lane (64 MiB), calls; and for every sparse lane a frame as
  // clients cut them (16 MiB), or what the window lets in while the server is busy. Over it the largest is closed.
  uint64_t worker_bytes = uint64_t{72} << 20;
  uint64_t lane_bytes = uint64_t{20} << 20;
  uint64_t unnamed_bytes = uint64_t{36} << 20;  // of all that have a token, and have not said whose they are
  // Calls of strangers that are not over, because they are served or because the peer does not read the reply:
  int stranger_calls = 16;     // on a connection; one with more is closed
  int strangers_calls = 1024;  // on all of them; over it the connection with most of them is closed
  // Connections of a worker: calls and one that comes back; and for every sparse lane. Over it one without a call or
  // lane is closed, the oldest first.
  size_t worker_connections = 16, lane_connections = 4;
  size_t unnamed_connections = 1024;  // that have a token, and have not said whose they are
  // Replies to a worker's calls that it has not read. Over it another of its connections that has some is closed.
  uint64_t reply_bytes = uint64_t{64} << 20;
  int strikes = 100;                // calls that were refused, or cancelled before they were served
  std::chrono::seconds window{10};  // within which

  // For a process that has so many descriptors for connections: strangers and unnamed ones leave room for workers.
  static ConnectionLimits Within(int descriptors) {
    ConnectionLimits limits;
    const auto most = static_cast<size_t>(descriptors);
    limits.strangers = std::min(limits.strangers, most / 4);
    limits.unnamed_connections = std::min(limits.unnamed_connections, most / 4);
    return limits;
  }
};

class Connection {
 public:
  enum class Kind : uint8_t { kStranger, kMember };
  static constexpr int kUnnamed = -1;
  // A lane of it has been opened, and has not said HELLO; false if too many have. Each that may is over some time.
  bool MayGreet() {
    if (greeting_.fetch_add(1, std::memory_order_relaxed) < kMostGreeting) return true;
    Greeted();
    return false;
  }
  void Greeted() { greeting_.fetch_sub(1, std::memory_order_relaxed); }
  // A request of it that may be large (Connections::BeginRequest) has been read.
  void EndRequest() { requests_.fetch_sub(1, std::memory_order_relaxed); }
  // A call or a frame of it was served.
  void Served() { served_.fetch_add(1, std::memory_order_relaxed); }
  // A message of it, of so many bytes, has come whole.
  void Received(size_t bytes) {
    messages_.fetch_add(1, std::memory_order_relaxed);
    message_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  Kind kind() const { return member_.load(std::memory_order_relaxed) ? Kind::kMember : Kind::kStranger; }

 private:
  friend class Connections;
  static constexpr int kMostGreeting = 4;  // a worker's lanes have a connection each
  std::atomic<int> greeting_{0};
  std::atomic<int> requests_{0};
  std::atomic<bool> grown_{false};  // its buffer
  std::atomic<int> reading_{0};     // calls and lanes whose messages are read
  std::atomic<int> calls_{0};       // that began while it was a stranger's, and are not over
  std::atomic<uint64_t> served_{0}, messages_{0}, message_bytes_{0};
  std::atomic<bool> member_{false};
  std::atomic<int> worker_{kUnnamed};
  // Guarded by Connections::mu_.
  int fd_ = -1;
  std::string peer_;
  std::chrono::steady_clock::time_point since_;
  uint64_t bytes_ = 0;                                   // received, as of the last look
  uint64_t messages_then_ = 0, message_bytes_then_ = 0;  // as of the last look
  uint64_t base_ = 0;         // of a member: the bytes of these that belong to messages that were read, about
  uint64_t reply_bytes_ = 0;  // that the peer has not read
  int strikes_ = 0;
  std::chrono::steady_clock::time_point struck_;  // when the window began
};

class Connections {
 public:
  // `resident` tells the memory of the process.
  explicit Connections(const ConnectionLimits& limits = {}, std::function<uint64_t()> resident = &base::ResidentBytes)
      : limits_(limits), resident_(std::move(resident)) {}

  // A connection has been accepted, and gRPC is about to get it, unless false: it has no peer any more. Closes another
  // stranger if there are too many.
  bool Add(int fd);
  // Of the connection whose peer is named as gRPC names it ("ipv4:127.0.0.1:4242"). Null if it is gone.
  std::shared_ptr<Connection> Find(std::string_view peer) const;
  // A worker of the job has been heard on it: which one, if that is known, and how many sparse lanes each has.
  void Join(Connection& connection, int worker = Connection::kUnnamed, int lanes = 0);
  // From now on messages of a call or lane are read; EndRead follows. While none are, it holds nothing.
  void BeginRead(Connection& connection) { connection.reading_.fetch_add(1, std::memory_order_relaxed); }
  void EndRead(Connection& connection);
  // A request of it is read that may be large; EndRequest follows.
  void BeginRequest(Connection& connection);
  // A call of it has begun: whether it is a stranger's. EndCall follows for such a call, when it is over. Closes the
  // connection, or the one with most calls, at the limit.
  bool BeginCall(Connection& connection);
  void EndCall(Connection& connection);
  // A call of it is about to get a reply of so many bytes; EndReply follows. False if too many on the same connection
  // have not been read.
  bool BeginReply(Connection& connection, uint64_t bytes);
  void EndReply(Connection& connection, uint64_t bytes);
  // A call of it was refused, or cancelled before it was served. Closes the connection at the limit.
  void Strike(const Connection& connection);

  // Closes connections that have sent too much, and forgets those that are gone. Those of workers are looked at when
  // the memory of the process has grown, and now and then. Returns when to look again; none: not before another
  // connection comes.
  std::optional<std::chrono::milliseconds> EnforceLimits(
      std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

  size_t size() const;
  uint64_t closed() const { return closed_.load(std::memory_order_relaxed); }  // by these limits

 private:
  using Map = std::map<std::string, std::shared_ptr<Connection>, std::less<>>;  // by peer
  // Its socket may receive as much at a time as the kernel likes.
  void Grow(Connection& connection);
  void CloseLocked(const Connection& connection, const char* why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A connection of `worker` if it has too many: one without a call or lane before the others, the oldest first.
  void CloseSpareLocked(int worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  using List = std::vector<std::shared_ptr<Connection>>;
  // Whether it is time to look at the workers' connections.
  bool MembersDueLocked(std::chrono::steady_clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A worker's connection holds nothing: no message of it is read.
  void Settle(Connection& connection);
  // What a worker's connection holds.
  static uint64_t HeldBy(Connection& connection);
  // The largest of `mine`, so that what is left holds `most`.
  static void CollectLargest(List mine, uint64_t most, List& out);

  const ConnectionLimits limits_;
  const std::function<uint64_t()> resident_;
  std::atomic<int> lanes_{2};            // sparse ones of a worker
  std::atomic<int> strangers_calls_{0};  // the sum of calls_
  mutable base::Mutex mu_;
  Map connections_ ABSL_GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point next_ ABSL_GUARDED_BY(mu_);          // when to look again
  std::chrono::steady_clock::time_point members_next_ ABSL_GUARDED_BY(mu_);  // and the others
  uint64_t resident_then_ ABSL_GUARDED_BY(mu_) = 0;  // when these were looked at, or less meanwhile
  std::chrono::steady_clock::time_point quiet_until_ ABSL_GUARDED_BY(mu_);
  uint64_t unsaid_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<uint64_t> closed_{0};
};

// "127.0.0.1:4242" of gRPC's name, and of a socket's peer; "" if there is none.
std::string PeerKey(std::string_view peer);
std::string PeerKeyOf(int fd);

}  // namespace regatta::wire
