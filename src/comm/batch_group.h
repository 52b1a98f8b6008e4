// Consecutive batches of a worker that make one step of the servers: `size` of them, whichever threads they run on,
// added in the order of batches. The last group of a pass may be short. Batches with different learning rates cannot be
// added up (Rates).
// Thread-safety: all methods are concurrent.
// Invariant: groups are handed over in order, each once; a batch may pull only when all groups before its own are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/step.h"
#include "comm/step_copy.h"
#include "table/gradient_sum.h"

namespace regatta::comm {

class BatchGroup {
 public:
  // What becomes of a group whose batches bring different learning rates for a table. kOneAGroup: an error that names
  // both, because the servers apply a group as one update. kOneASum: every run of batches with the same rates is a sum
  // of its own, with the group's number.
  enum class Rates : uint8_t { kOneAGroup, kOneASum };
  // `send` gets the sum of a group, whose grads.step is its number since Begin; calls do not overlap.
  using Send = std::function<absl::Status(const base::StepGrads& grads)>;
  BatchGroup(int size, int64_t dense_size, Rates rates, Send send);

  int size() const { return static_cast<int>(size_); }
  // Batches from pass.learnt.low on, whose step is first_step + its number.
  void Begin(const base::PassKeys& pass);
  // The group of a step, counted from 0.
  uint64_t GroupOf(uint64_t step) const;
  // Waits until all groups before `group` have been sent.
  absl::Status Await(uint64_t group);
  absl::Status Add(const base::StepGrads& grads);
  // A batch of the present group will not come: every wait ends with `status`.
  void Abort(const absl::Status& status);
  // Sends what the last group has; the number of groups since Begin.
  absl::StatusOr<uint64_t> End();

 private:
  using Parts = std::span<const StepCopy* const>;
  absl::Status SendLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status SendGroupLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status SendSumLocked(Parts parts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddTablesLocked(Parts parts, std::vector<base::TableGrads>& sum) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t size_;
  const int64_t dense_size_;
  const Rates rates_;
  const Send send_;
  uint64_t pass_ = 0;  // of Begin; read while steps run, written while none does
  uint64_t first_step_ = 0;
  base::Mutex mu_;
  base::CondVar changed_;
  uint64_t sent_ ABSL_GUARDED_BY(mu_) = 0;  // groups
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, std::unique_ptr<StepCopy>> parts_ ABSL_GUARDED_BY(mu_);  // of the present group, by step
  std::vector<std::unique_ptr<StepCopy>> spare_ ABSL_GUARDED_BY(mu_);
  std::vector<table::GradientSum> sums_ ABSL_GUARDED_BY(mu_);
  std::vector<float> dense_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> batches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::comm
