// All-gather rounds: each worker brings a payload under a name. When all expected workers have come, each gets the
// payloads of all. Barriers and reductions are built on it. A name may be used again: its rounds are numbered, and a
// call may be repeated.
// Thread-safety: all methods are concurrent.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/forgotten_rounds.h"
#include "server/roster.h"

namespace regatta::server {

enum class Outcome : uint8_t { kResult, kFailure };  // kFailure: the payload says why the worker is about to give up

class Rendezvous {
 public:
  // What a worker may have here that is not complete, and what is kept of all that is.
  static constexpr size_t kMostWaiting = 8;                     // calls, and rounds that it has brought something to
  static constexpr size_t kMostBytes = size_t{32} << 20;        // payloads
  static constexpr size_t kMostFailureBytes = size_t{4} << 10;  // of the words of a failure; the rest is cut off
  static constexpr size_t kKeptBytes = size_t{64} << 20;        // older rounds are forgotten first, the last two never
  explicit Rendezvous(Roster& roster);

  using Payloads = std::map<int, std::string>;  // by rank
  // `round` counts the worker's uses of the name from 0.
  // `cancelled` is asked now and then; CANCELLED when it says so. The job's failure ends every wait. DEADLINE_EXCEEDED,
  // naming who is missing, after `timeout` (0 = none).
  // RESOURCE_EXHAUSTED, and nothing is brought, if the worker has too much here already. What a call brought that ends
  // without an answer is not kept, but for a failure.
  // ABORTED for all workers, with the failure's message, if a worker brings a failure. Such a round is not remembered.
  // Nor is a round that ends after a worker gave up, if workers come back: they repeat it when the job continues.
  // FAILED_PRECONDITION if another process has the worker's place (Forget), also for a call that waits already; and if
  // the round is over and its answer is not kept any more, because nobody else will come to it.
  absl::StatusOr<std::shared_ptr<const Payloads>> AllGather(const Identity& worker, const std::string& name,
                                                            uint64_t round, std::string payload,
                                                            std::chrono::duration<double> timeout,
                                                            const std::function<bool()>& cancelled,
                                                            Outcome outcome = Outcome::kResult);

  // Another process has taken the rank's place: the one that the roster has now. It comes again to what is not over
  // yet. What processes before it brought there is dropped, and their calls end. Call it after Roster::Join; a second
  // call for the same process changes nothing.
  void Forget(int rank);

  // Called, under the lock, before a round is over: an error ends the job. Before the first AllGather only.
  using Record = std::function<absl::Status(const std::string& name, uint64_t round, const Payloads& payloads)>;
  void RecordWith(Record record) { record_ = std::move(record); }
  // As a record tells; nothing new where it tells of a round that is known. Before the first AllGather only.
  void Restore(const std::string& name, uint64_t round, Payloads payloads);
  // What Hold gave of rounds that are not kept.
  void RestoreForgotten(std::span<const uint64_t> pairs);
  using RoundKey = std::pair<std::string, uint64_t>;
  // The complete rounds that are still remembered: a worker that comes to one of them gets its result.
  std::vector<RoundKey> over() const;
  // `fn` with all of these, so that restored in this order they are known as they are now, and those that are not
  // kept any more, while no other one ends.
  using Over = std::vector<std::pair<RoundKey, std::shared_ptr<const Payloads>>>;
  absl::Status Hold(const std::function<absl::Status(const Over& over, const ForgottenRounds& forgotten)>& fn) const;

 private:
  using Caller = std::pair<int, uint64_t>;  // rank and incarnation
  struct Round {
    Payloads payloads;
    bool complete = false;
    std::map<int, uint64_t> brought_by = {};    // incarnations that brought the payloads, by rank
    std::map<int, absl::Status> failures = {};  // that were brought, by rank
    std::map<Caller, size_t> calls = {};        // that wait

    absl::Status failure() const { return failures.empty() ? absl::OkStatus() : failures.begin()->second; }
    size_t bytes() const;
    bool HasPayloadOf(const Caller& caller) const {
      const auto found = brought_by.find(caller.first);
      return found != brought_by.end() && found->second == caller.second;
    }
    void Drop(int rank);  // what it brought, a failure too
  };
  // FAILED_PRECONDITION where another process has the caller's place.
  absl::Status CheckPlaceLocked(const Caller& caller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether it is complete; then everybody who waits for it is told.
  bool TryCompleteLocked(const RoundKey& key, Round& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether the caller may bring so many bytes to the round.
  absl::Status CheckRoomLocked(const Caller& caller, const RoundKey& key, size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A call does not wait for the round any more.
  void LeaveLocked(const Caller& caller, const RoundKey& key, const std::shared_ptr<Round>& round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AwaitLocked(const Caller& caller, const RoundKey& key, const Round& round,
                           std::chrono::duration<double> timeout, const std::function<bool()>& cancelled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetLocked(const RoundKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepLocked(const RoundKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string MissingLocked(const Round& round) const;
  void CompleteRounds();

  Roster& roster_;
  mutable base::Mutex mu_;
  base::CondVar changed_;
  Record record_ = [](const std::string&, uint64_t, const Payloads&) { return absl::OkStatus(); };
  std::map<RoundKey, std::shared_ptr<Round>> rounds_ ABSL_GUARDED_BY(mu_);
  std::map<int, uint64_t> successors_ ABSL_GUARDED_BY(mu_);  // incarnations that took a place, by rank
  absl::Status unrecorded_ ABSL_GUARDED_BY(mu_);             // why a round could not end
  size_t first_ ABSL_GUARDED_BY(mu_) = 0;               // of rounds_: how many of the job's first are kept for good
  std::deque<RoundKey> complete_ ABSL_GUARDED_BY(mu_);  // of rounds_, the others, the oldest first
  size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;          // of complete_
  ForgottenRounds forgotten_ ABSL_GUARDED_BY(mu_);      // that were in complete_
};

}  // namespace regatta::server
