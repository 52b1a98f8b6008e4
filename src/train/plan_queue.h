// Batches with their keys planned, ready to be trained on: reading, deduplication and routing of the next batches run
// ahead of the steps, in a thread of their own.
// Thread-safety: Next and Recycle are concurrent; Start and Stop are for one thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "data/dataset.h"
#include "lookup/key_plan.h"
#include "metrics/trace.h"

namespace regatta::train {

struct PlannedBatch {
  std::unique_ptr<data::Batch> batch;
  std::vector<lookup::KeyPlan> plans;  // one for each slot set
};

class PlanQueue {
 public:
  // Plans each of slot_sets (LookupLayout). Holds at most `depth` planned batches.
  PlanQueue(data::Dataset& dataset, std::vector<std::vector<int>> slot_sets, size_t depth, metrics::Tracer* tracer);
  ~PlanQueue();

  // Starts to read. What fails in doing so, Next reports.
  void Start(const base::DataPosition& done);
  // The next batch in order, or nullptr at the end of the pass, or soon after `stop_asked` says so while the data keeps
  // it waiting; the pass is over then.
  absl::StatusOr<std::unique_ptr<PlannedBatch>> Next(const std::function<bool()>& stop_asked);
  // Whether a Next was stopped so.
  bool interrupted() const;
  // The next batch if it is there already; nullptr where it would have to be waited for, or at the end.
  std::unique_ptr<PlannedBatch> TryNext();
  void Recycle(std::unique_ptr<PlannedBatch> batch);
  // Ends the pass, finished or not. Afterwards no thread of it is left.
  absl::Status Stop();

 private:
  void Run(const base::DataPosition& done);
  absl::Status Read(const base::DataPosition& done);
  void InterruptReading();
  std::unique_ptr<PlannedBatch> FreeBatch();
  std::unique_ptr<PlannedBatch> TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  data::Dataset& dataset_;
  const std::vector<std::vector<int>> slot_sets_;
  const size_t depth_;
  metrics::Tracer* const tracer_;

  std::thread thread_;
  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::deque<std::unique_ptr<PlannedBatch>> ready_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<PlannedBatch>> free_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool interrupted_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::train
