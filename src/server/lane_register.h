// Which lanes of a server are open: one that was opened and does not say HELLO is closed after a while, there are so
// many of these and no more, and so it is with those of a worker. Thread-safety: all methods are concurrent; an Opening
// belongs to the lane's thread.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <map>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::server {

class LaneRegister {
 public:
  static constexpr size_t kMostSilent = 128;  // each holds a thread, of which workers need the rest
  explicit LaneRegister(std::chrono::duration<double> patience) : patience_(patience) {}

  // A lane, from its opening to its end.
  class Opening {
   public:
    Opening(LaneRegister& lanes, grpc::ServerContext& context);
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
    ~Opening();

    // RESOURCE_EXHAUSTED where too many others have not said HELLO yet.
    absl::Status MayWait() const;
    // It has said HELLO as `rank`, who may have `limit` open. RESOURCE_EXHAUSTED where that is one too many.
    absl::Status Greet(int rank, int limit);

   private:
    LaneRegister& lanes_;
    grpc::ServerContext& context_;
    int rank_ = -1;  // counted under it
  };

  // Ends the lanes that have been silent for too long. Whoever watches over the server calls it now and then.
  void CancelSilent();
  int open(int rank) const;

 private:
  const std::chrono::duration<double> patience_;
  mutable base::Mutex mu_;
  std::map<grpc::ServerContext*, std::chrono::steady_clock::time_point> silent_ ABSL_GUARDED_BY(mu_);  // since when
  std::map<int, int> open_ ABSL_GUARDED_BY(mu_);                                                       // lanes by rank
};

}  // namespace regatta::server
