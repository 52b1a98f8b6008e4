// Combines what the workers of a geo job have changed, on one lane. A worker divides its pass into rounds and says in
// which of them a change was learnt. What a round moves a row by is the mean of the changes of the workers that changed
// it in that round: the first one moves it by all of its change, each further one to the mean of all so far. The dense
// block is one row, which every worker changes.
//
//   round 3, row 7 = 1.0:   worker 0 brings +0.4 -> 1.4;   worker 1 brings +0.2 -> 1.3;   nobody else: 1.3
//
// A change of several rounds counts as an equal part in each. A round is closed, and forgotten, when every worker has
// come to a later one, when more than kMostOpen are open, or when the open ones take too much memory; a change of a
// closed round counts in the oldest open one.
// Thread-safety: all methods are concurrent.
// Invariant: a request is logged under the lock under which it is counted. So the lane's log has the requests in the
// order in which they were counted, and a replay counts the same.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/key.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/step_part.h"
#include "table/push_options.h"
#include "wire/frame.h"

namespace regatta::server {

class GeoRounds {
 public:
  static constexpr size_t kMostOpen = 16;
  // Passes are numbered one by one: nobody is further from the others.
  static constexpr uint64_t kMostPassesApart = 64;
  // That open rounds take on all lanes, for each worker of the job.
  static constexpr size_t kBytesAWorker = 64 << 20;

  // Rounds first to last of a pass, both included.
  struct Span {
    uint64_t pass = 0;
    uint64_t first = 0;
    uint64_t last = 0;
  };
  // INVALID_ARGUMENT where the request names no rounds.
  static absl::StatusOr<Span> SpanOf(const ps::FrameHeader& header);

  // A server that comes back must be given the same `most_bytes`: rounds are closed by it.
  GeoRounds(int workers, size_t most_bytes);

  // For a request of a worker, not for a record. OUT_OF_RANGE if the pass is far from those of the others.
  absl::Status Check(int rank, uint64_t pass) const;

  using Step = std::function<absl::Status()>;
  // Logs the change that `part` holds, replaces it by what the tables are to be moved by, and applies that. Rows with
  // NaN or Inf are not counted, and left for the tables to skip; kClip counts their finite elements. The same goes for
  // rows whose mean would not be finite; with kAbort they are FAILED_PRECONDITION, before anything is logged or
  // counted.
  absl::Status Combine(int rank, const Span& span, table::NanPolicy nan_policy, StepPart& part, const Step& log,
                       const Step& apply);
  // The rank changes nothing more in this pass.
  absl::Status Leave(int rank, uint64_t pass, const Step& log);
  // The rows were replaced.
  void Clear();

  // For a checkpoint.
  void Save(ps::OpenRounds& out) const;
  absl::Status Restore(const ps::OpenRounds& saved);

 private:
  struct Label {
    uint64_t pass = 0;
    uint64_t round = 0;
    friend auto operator<=>(const Label&, const Label&) = default;
  };
  // Of one table in one round. Row i has width means and as many words of worker bits as the job needs.
  struct Rows {
    int width = 0;
    absl::flat_hash_map<base::Key, size_t> places;
    std::vector<uint64_t> workers;
    std::vector<float> means;
  };
  struct Round {
    std::map<int, Rows> tables;  // kDense = the dense block
    size_t bytes = 0;
  };

  static constexpr int kDense = -1;
  static Label FromWire(const ps::OpenRounds::Label& label) { return {label.pass(), label.round()}; }
  static void ToWire(const Label& label, ps::OpenRounds::Label& out);
  size_t RowBytes(size_t width) const;
  // The rounds that a change of `span` counts in: open ones, and ones to be opened.
  std::vector<Label> LabelsLocked(const Span& span, const StepPart& part) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether CountLocked would give finite numbers.
  bool IsFiniteLocked(std::span<const Label> labels, int rank, int table, base::Key key,
                      std::span<const float> change) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckFiniteLocked(std::span<const Label> labels, int rank, const StepPart& part) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // `change` becomes what the row is to be moved by.
  void CountLocked(std::span<Round* const> rounds, int rank, int table, base::Key key, std::span<float> change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReachLocked(int rank, const Label& label) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseOldestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status RestoreRowsLocked(const ps::OpenRounds::Rows& saved, Round& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t words_;  // of worker bits a row
  const size_t most_bytes_;
  mutable base::Mutex mu_;
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of all open rounds
  std::map<Label, Round> open_ ABSL_GUARDED_BY(mu_);
  std::vector<Label> reached_ ABSL_GUARDED_BY(mu_);  // of each rank
  Label oldest_ ABSL_GUARDED_BY(mu_);                // rounds before it are closed
  std::vector<float> moved_ ABSL_GUARDED_BY(mu_);    // of one row, reused
};

}  // namespace regatta::server
