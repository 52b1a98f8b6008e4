// The steps of a job, for a loop in Python: rows out, gradients in, one commit a step.
// Thread-safety: one thread at a time. Calls wait without the interpreter's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "binding/lookup_call.h"
#include "comm/communicator.h"
#include "table/push_options.h"
#include "train/stepper.h"

namespace regatta::binding {

// Where the rows of a lookup go.
struct PullTarget {
  const LookupCall* call = nullptr;
  float* out = nullptr;   // [bags, width], or [ids, width] without pooling
  float* rows = nullptr;  // [keys, width], or null
  int width = 0;          // of both
};

// One gradient of each key of a lookup.
struct CommitPart {
  const LookupCall* call = nullptr;
  base::RowsView<const float> grads;
  std::optional<float> learning_rate;  // instead of the table's own
};

class Steps {
 public:
  // Borrows the communicator. With NanPolicy::kAbort a commit of gradients with NaN or Inf is an error that names the
  // table, by `names`, and the key; nothing is sent.
  Steps(comm::Communicator& communicator, table::NanPolicy nan_policy, std::vector<std::string> names);
  comm::Communicator& communicator() const { return communicator_; }

  absl::Status BeginPass(uint64_t pass, uint64_t first_step);
  absl::Status EndPass() { return stepper_.EndPass(); }
  void BeginStep(const train::StepPlace& place) { stepper_.BeginStep(place); }
  // Whether Prefetch starts anything in this mode.
  bool prefetches() const { return stepper_.prefetches(); }
  // Lookups that the next step's first Pull has, the same and in this order; while the present step is not committed.
  absl::Status Prefetch(const train::StepPlace& next, std::span<const LookupCall* const> calls);
  // Targets of one table are pulled one after the other: a request has each table once.
  absl::Status Pull(std::span<const PullTarget> targets);
  // The dense parameters that the last Pull brought; until the step's commit.
  std::span<const float> dense() const { return dense_; }
  // Gradients are sums over `samples`. `dense` covers every element of the dense parameters once, or is empty: nothing
  // is learnt of them. With 0 samples the step learns nothing, and others that wait for it go on.
  absl::Status Commit(uint32_t samples, std::span<const CommitPart> parts, std::span<const base::DenseGrad> dense,
                      std::optional<float> dense_learning_rate);

  // Of the last commit.
  uint64_t bad_rows() const { return stepper_.bad_rows(); }
  bool bad_dense() const { return stepper_.bad_dense(); }

 private:
  absl::Status PullOnce(std::span<const PullTarget> targets);
  std::string DescribeBad(std::span<const CommitPart> parts) const;

  comm::Communicator& communicator_;
  const std::vector<std::string> names_;  // of the tables
  train::Stepper stepper_;
  std::vector<base::TableKeys> keys_;
  std::vector<base::TableGrads> grads_;
  std::span<const float> dense_;
};

}  // namespace regatta::binding
