// The sockets that a server listens on, the thread that accepts connections and the one that watches them
// (connections.h), and the memory of the process: gRPC may read a connection in the thread that hands it over, for as
// long as the peer sends. gRPC's own listener stops for good when the process has no descriptor left; this one waits
// until there is one again, and leaves some for the files that the process opens itself. Thread-safety: Bind, Start and
// Stop belong to the owner.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/freed_memory.h"
#include "base/mutex.h"
#include "base/status.h"
#include "wire/connections.h"

namespace regatta::wire {

class Listener {
 public:
  // Descriptors below `most` are for connections; the rest of the process's limit is for files of its own.
  explicit Listener(Connections& connections, int most = MostConnections()) : connections_(connections), most_(most) {}
  ~Listener() { Stop(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Listens on host:port and gives the port, which it chooses if that is 0. A wildcard is of both families. Connections
  // wait until Start.
  absl::StatusOr<int> Bind(const std::string& endpoint);
  // From now on every connection is handed to `accepted`, which owns the descriptor; fewer of them while `busy`. In a
  // thread of its own.
  absl::Status Start(std::function<void(int fd)> accepted, std::function<bool()> busy);
  // Of the process's limit of descriptors, as it is now.
  static int MostConnections();
  // Accepts no more, and closes the sockets.
  void Stop();

 private:
  void Accept();
  void Watch();
  // Whether there may be more to accept.
  bool AcceptOne(int socket);

  Connections& connections_;
  const int most_;
  std::function<void(int fd)> accepted_;
  std::function<bool()> busy_;
  std::vector<int> sockets_;
  int wake_ = -1;  // an eventfd: Stop
  std::thread accepts_;
  std::thread watches_;
  base::FreedMemory freed_;  // of the thread that watches
  base::Mutex mu_;
  base::CondVar changed_;
  uint64_t added_ ABSL_GUARDED_BY(mu_) = 0;  // connections
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::wire
