// The open lanes of a server. A lane that does not send HELLO is closed after a timeout. The number of such silent
// lanes is limited: one more replaces the oldest silent lane of the connection that has most. The number of lanes of a
// worker is limited too. Thread-safety: all methods are concurrent; an Opening belongs to the lane's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::server {

class LaneRegister {
 public:
  static constexpr size_t kMostSilent = 128;  // each holds a thread
  explicit LaneRegister(std::chrono::duration<double> timeout) : timeout_(timeout) {}

  // A lane, from its opening to its end.
  class Opening {
   public:
    // On the connection from `peer`; `cancel` ends the lane, and may be called from any thread while this lives. So
    // many as kMostSilent or `most`, whichever is larger, may be silent.
    Opening(LaneRegister& lanes, std::string peer, std::function<void()> cancel, size_t most = 0);
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
    ~Opening();

    // It has said HELLO as `rank`, who may have `limit` open. RESOURCE_EXHAUSTED if that is one too many. Ends lanes of
    // other processes of the rank, whose place this one has taken: what they hold is given back.
    absl::Status Greet(int rank, int limit, uint64_t incarnation = 0);

   private:
    LaneRegister& lanes_;
    const std::function<void()> cancel_;
    uint64_t number_ = 0;
    int rank_ = -1;  // counted under it
  };

  // Ends the lanes that have been silent for too long. The thread that supervises the server calls it periodically.
  void CancelSilent();
  int open(int rank) const;
  size_t silent() const;

 private:
  struct Silent {
    std::string peer;
    std::function<void()> cancel;
    std::chrono::steady_clock::time_point since;
  };
  struct Open {
    uint64_t incarnation = 0;
    std::function<void()> cancel;
  };
  void MakeRoomLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::chrono::duration<double> timeout_;
  mutable base::Mutex mu_;
  uint64_t opened_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Silent> silent_ ABSL_GUARDED_BY(mu_);             // the oldest first
  std::map<int, std::map<uint64_t, Open>> open_ ABSL_GUARDED_BY(mu_);  // by rank and number
};

}  // namespace regatta::server
