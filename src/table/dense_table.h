// The dense parameters of a model, flattened into one array (or a server's block of it), and their optimizer's state.
// Thread-safety: Snapshot, Copy, Push, Load and the counters are concurrent (one lock); Values and State are for
// callers that serialise steps themselves (local mode with one thread; saving).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/step.h"
#include "table/push_options.h"
#include "table/rule/rule.h"
#include "table/schedule.h"
#include "table/table_config.h"

namespace regatta::table {

// All of a dense table at one moment.
struct DenseCopy {
  std::vector<float> values;
  std::vector<std::vector<float>> states;
  uint64_t updates = 0;
};

class DenseTable {
 public:
  // INVALID_ARGUMENT names the field of `config` that cannot be.
  static absl::StatusOr<std::unique_ptr<DenseTable>> Create(const DenseTableConfig& config);
  // Only elements [begin, end) of the flattened array; offsets of pushes count from `begin`.
  static absl::StatusOr<std::unique_ptr<DenseTable>> CreateBlock(const DenseTableConfig& config, int64_t begin,
                                                                 int64_t end);
  // Elements of all parameters of `config`; INVALID_ARGUMENT as Create.
  static absl::StatusOr<int64_t> SizeOf(const DenseTableConfig& config);

  const DenseTableConfig& config() const { return config_; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }  // elements of all parameters, or of the block
  int64_t begin() const { return begin_; }                               // of the block in the whole array
  std::span<const int64_t> offsets() const { return offsets_; }  // of each parameter in the whole array, and its end
  std::span<const float> Values() const { return values_; }      // live; see thread-safety above
  void Snapshot(std::span<float> out) const;                     // a consistent copy; out has size() floats
  DenseCopy Copy() const;                                        // a snapshot: no push is in it by half
  // One step of the rule over all of `grads`, which must cover every element once: mean = sum / samples. With `rate`,
  // or else the learning rate of the schedule.
  absl::Status Push(std::span<const base::DenseGrad> grads, const PushOptions& options, std::optional<float> rate = {});
  // values += differences, size() of them; the rule's states stay as they are. NaN and Inf go by `nan_policy`, as in
  // Push.
  absl::Status Add(std::span<const float> differences, NanPolicy nan_policy);
  // The error that Push and Add give with NanPolicy::kAbort: for a request of several tables, before any is changed.
  absl::Status CheckFinite(const base::DenseGrad& grad) const;
  // The error that Push gives for a learning rate of the commit, for the same.
  absl::Status CheckLearningRate(std::optional<float> rate) const;
  uint64_t updates() const;
  uint64_t skipped_gradients() const;  // pushes left out by NanPolicy::kSkip

  // State vectors of size() floats each (adam: m, v), for saving and loading.
  int state_count() const { return rule_->state_count(); }
  std::span<const float> State(int i) const { return states_[static_cast<size_t>(i)]; }
  absl::Status Load(std::span<const float> values, std::span<const std::vector<float>> states, uint64_t updates);

 private:
  DenseTable(const DenseTableConfig& config, std::unique_ptr<DenseRule> rule, const Schedule& schedule,
             std::vector<int64_t> offsets, int64_t begin, std::vector<float> values);

  absl::Status CheckCover(std::span<const base::DenseGrad> grads) const;

  const DenseTableConfig config_;
  const std::unique_ptr<DenseRule> rule_;
  const Schedule schedule_;
  const std::vector<int64_t> offsets_;  // of each parameter in the whole array, and its end
  const int64_t begin_;                 // of the block

  mutable base::Mutex mu_;
  // Written under mu_; not annotated, because Values and State give them out to callers that serialise.
  std::vector<float> values_;
  std::vector<std::vector<float>> states_;
  uint64_t updates_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t skipped_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace regatta::table
