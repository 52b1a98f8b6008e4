// Batches that were given back, kept for their memory.
// Thread-safety: concurrent.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "data/batch.h"

namespace regatta::data {

class BatchPool {
 public:
  // An empty batch.
  std::unique_ptr<Batch> Take() {
    base::MutexLock lock(mu_);
    if (spare_.empty()) return std::make_unique<Batch>();
    std::unique_ptr<Batch> batch = std::move(spare_.back());
    spare_.pop_back();
    return batch;
  }
  void Recycle(std::unique_ptr<Batch> batch) {
    batch->Clear();
    base::MutexLock lock(mu_);
    spare_.push_back(std::move(batch));
  }

 private:
  base::Mutex mu_;
  std::vector<std::unique_ptr<Batch>> spare_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::data
