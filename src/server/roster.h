// Who takes part in a job: which workers are awaited, here, done or lost, and when each was last heard.
// Thread-safety: all methods are concurrent. Listeners are called without the roster's lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/job_policy.h"
#include "base/mutex.h"
#include "base/status.h"
#include "wire/ps.pb.h"

namespace regatta::server {

// kAway: lost, and awaited again (LossPolicy::kAwait).
enum class MemberState : uint8_t { kAwaited, kHere, kAway, kDone, kLost };
const char* Name(MemberState state);

// How a worker leaves: its work is done, or it failed.
enum class Farewell : uint8_t { kDone, kGaveUp };

struct Identity {
  int rank = 0;
  uint64_t incarnation = 0;
  std::string where;  // host and process id
};

struct Member {
  Identity id;
  MemberState state = MemberState::kAwaited;
  std::chrono::steady_clock::time_point heard;
  std::optional<std::chrono::steady_clock::time_point> broken;  // a connection broke, and nothing was heard since
  std::optional<std::chrono::steady_clock::time_point> away;    // since when
  ps::WorkerProgress progress;                                  // the last that its heartbeat carried
  std::string predecessor;                                      // where the process ran that it replaced; "" = none
  bool seen = true;                                             // heard by this process of the server
  bool gave_up = false;                                         // it is away because it said so
};

class Roster {
 public:
  static constexpr std::chrono::seconds kLives{5};    // two heartbeats and a little
  static constexpr std::chrono::seconds kReopens{1};  // a living worker opens a lane that broke again within
  static constexpr std::chrono::seconds kAsleep{1};   // this process, when ExpireSilent has not been called for so long

  // With kAwait a worker may be away for `timeout`; then the job ends.
  Roster(int workers, base::LossPolicy policy, std::chrono::duration<double> timeout = std::chrono::seconds(600));

  // How long a worker counts as living since it was heard. Before the first Join only.
  void SetLives(std::chrono::duration<double> lives) { lives_ = lives; }
  int workers() const { return static_cast<int>(members_.size()); }
  // FAILED_PRECONDITION where the rank is taken, or the job is over. With kAwait a process takes the place of the one
  // that was there before, which is refused from then on: where that one ran. "" where there was none. UNAVAILABLE
  // while that one lives: it was heard within kLives (SetLives), and none of its connections broke
  // kReopens ago or earlier and was not opened again. One that Restore knows counts as heard then: it reconnects.
  absl::StatusOr<std::string> Join(const Identity& id);
  // OK where the worker is here under this incarnation.
  absl::Status Check(const Identity& id) const;
  void Heard(const Identity& id, const ps::WorkerProgress& progress);
  // A worker was told to stop: everybody learns it with the next heartbeat.
  void AskToStop();
  bool stopping() const;
  // With kAwait one that gave up is away, as if it had been lost: the others wait for it, and nothing is recorded.
  void Leave(const Identity& id, Farewell farewell = Farewell::kDone);
  void Lose(int rank, const std::string& why);
  // The worker has opened a lane: it lives.
  void Reached(const Identity& id);
  // One of the worker's connections broke: it is lost unless it is heard again soon.
  void Suspect(const Identity& id);
  // Loses everyone who is here and has not been heard for `limit`, or not since a connection broke a little ago; ends
  // the job if a worker has been away for too long, or for `limit` since all were told to stop.
  void ExpireSilent(std::chrono::duration<double> limit);
  // This process has slept for `slept`: the time does not count as silence of workers.
  void ExtendDeadlines(std::chrono::steady_clock::duration slept);
  // Ends the job: every later Check and Join fails with it.
  void Fail(const absl::Status& status);

  // Whether more is to come from the rank: it is awaited, here or away.
  bool Expected(int rank) const;
  bool AllGone() const;  // every worker is done, lost or gave up, and at least one was here
  // Whether another start of servers and workers may go on with the job, which has failed: it ends with a failure, or a
  // worker gave up and no other process has taken its place yet.
  bool CanGoOnLater() const;
  absl::Status failure() const;
  std::vector<Member> members() const;
  // "worker 1 (host, pid 7, silent for 9.8 s)".
  std::string Describe(int rank) const;

  // Called, under the roster's lock, before a worker joins, is done or is lost. An error keeps the worker out, or ends
  // the job. Before the first Join only.
  using Record = std::function<absl::Status(const Identity& id, MemberState state)>;
  void RecordWith(Record record) { record_ = std::move(record); }
  // As a record tells; `predecessor` is where the process ran that it replaced, if the record knows it. Before the
  // first Join only.
  void Restore(const Identity& id, MemberState state, const std::string& predecessor = "");
  // Calls `fn` with all members. No worker joins, leaves or is lost meanwhile.
  absl::Status Hold(const std::function<absl::Status(const std::vector<Member>& members)>& fn) const;

  // Called after every change of who is expected, and after a failure. Before the first Join only.
  void Listen(std::function<void()> listener);

 private:
  void Changed();
  std::string DescribeLocked(int rank) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null if no process of this incarnation has the rank.
  Member* FindLocked(const Identity& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // One that is away may have been slow only.
  static bool PresentLocked(const Member& member) {
    return member.state == MemberState::kHere || (member.state == MemberState::kAway && !member.gave_up);
  }
  void HeardLocked(Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void LoseLocked(int rank, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Why another process cannot take the member's place yet; OK: it can.
  absl::Status CheckGoneLocked(const Member& member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Why the job ends without a worker that is away; OK: it is waited for.
  absl::Status GiveUpLocked(int rank, std::chrono::duration<double> limit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const base::LossPolicy policy_;
  const std::chrono::duration<double> timeout_;
  std::chrono::duration<double> lives_ = kLives;
  std::vector<std::function<void()>> listeners_;
  Record record_ = [](const Identity&, MemberState) { return absl::OkStatus(); };
  mutable base::Mutex mu_;
  std::vector<Member> members_;  // its size is constant; elements under mu_
  std::optional<std::chrono::steady_clock::time_point> stop_asked_ ABSL_GUARDED_BY(mu_);
  std::optional<std::chrono::steady_clock::time_point> checked_ ABSL_GUARDED_BY(mu_);  // for silent members, last
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::server
