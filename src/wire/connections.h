// The connections of a server, and what each of them has done. A stranger, on whose connection no worker of the job has
// been heard yet, may send a few bytes, there are so many strangers and no more, and a connection whose calls are
// refused or cancelled again and again is closed. gRPC 1.51 knows none of these limits.
// Thread-safety: all methods are concurrent.
// Invariant: a descriptor belongs to gRPC, which may close it at any time. It is used only through a copy whose peer
// has been compared, so that no other connection is ever closed. A stranger's socket receives little at a time, so that
// gRPC reads little of it at once.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace regatta::wire {

struct ConnectionLimits {
  size_t strangers = 512;                         // connections; over it the oldest of them is closed
  uint64_t stranger_bytes = uint64_t{1} << 20;    // that one may send; and kBytesACall with every call that was served
  uint64_t request_bytes = uint64_t{36} << 20;    // besides, while a request of it is read that may be large
  uint64_t strangers_bytes = uint64_t{48} << 20;  // that all of them may send
  uint64_t member_bytes = uint64_t{96} << 20;     // that a worker's may send without a call or frame that is served
  int strikes = 100;                              // calls that were refused, or cancelled before they were served
  std::chrono::seconds window{10};                // within which
};

class Connection {
 public:
  enum class Kind : uint8_t { kStranger, kMember };
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
  Kind kind() const { return member_.load(std::memory_order_relaxed) ? Kind::kMember : Kind::kStranger; }

 private:
  friend class Connections;
  static constexpr int kMostGreeting = 4;  // a worker's lanes have a connection each
  std::atomic<int> greeting_{0};
  std::atomic<int> requests_{0};
  std::atomic<bool> grown_{false};  // its buffer
  std::atomic<uint64_t> served_{0};
  std::atomic<bool> member_{false};
  // Guarded by Connections::mu_.
  int fd_ = -1;
  std::string peer_;
  std::chrono::steady_clock::time_point since_;
  uint64_t bytes_ = 0;        // received, as of the last look
  uint64_t served_then_ = 0;  // as of the last look
  uint64_t base_ = 0;         // of a member: bytes when something was served last
  int strikes_ = 0;
  std::chrono::steady_clock::time_point struck_;  // when the window began
};

class Connections {
 public:
  explicit Connections(const ConnectionLimits& limits = {}) : limits_(limits) {}

  // A connection has been accepted, and gRPC is about to get it, unless false: it has no peer any more. Closes another
  // stranger if there are too many.
  bool Add(int fd);
  // Of the connection whose peer is named as gRPC names it ("ipv4:127.0.0.1:4242"). Null if it is gone.
  std::shared_ptr<Connection> Find(std::string_view peer) const;
  // A worker of the job has been heard on it.
  void Join(Connection& connection);
  // A request of it is read that may be large; EndRequest follows.
  void BeginRequest(Connection& connection);
  // A call of it was refused, or cancelled before it was served. Closes the connection at the limit.
  void Strike(const Connection& connection);

  // Closes connections that have sent too much, and forgets those that are gone. Returns when to look again; none: not
  // before another connection comes.
  std::optional<std::chrono::milliseconds> Look(
      std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

  size_t size() const;
  uint64_t closed() const { return closed_.load(std::memory_order_relaxed); }  // by these limits

 private:
  using Map = std::map<std::string, std::shared_ptr<Connection>, std::less<>>;  // by peer
  // Its socket may receive as much at a time as the kernel likes.
  void Grow(Connection& connection);
  void CloseLocked(const Connection& connection, const char* why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ConnectionLimits limits_;
  mutable base::Mutex mu_;
  Map connections_ ABSL_GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point next_ ABSL_GUARDED_BY(mu_);          // when strangers are looked at
  std::chrono::steady_clock::time_point members_next_ ABSL_GUARDED_BY(mu_);  // and the others
  std::chrono::steady_clock::time_point quiet_until_ ABSL_GUARDED_BY(mu_);
  uint64_t unsaid_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<uint64_t> closed_{0};
};

// "127.0.0.1:4242" of gRPC's name, and of a socket's peer; "" if there is none.
std::string PeerKey(std::string_view peer);
std::string PeerKeyOf(int fd);

}  // namespace regatta::wire
