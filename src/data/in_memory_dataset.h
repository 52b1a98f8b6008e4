// Parses the files once, at the first pass, and gives batches from memory, shuffled by (seed, pass) where asked.
// Thread-safety: as Dataset says; Next builds batches of several threads at the same time.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "data/batch_pool.h"
#include "data/dataset.h"
#include "data/dataset_options.h"
#include "data/ordered_reader.h"
#include "data/progress_meter.h"

namespace regatta::data {

class InMemoryDataset final : public Dataset {
 public:
  InMemoryDataset(const DatasetOptions& options, const FormatEntry& format);

  absl::Status BeginPass(const base::DataPosition& done) override;
  absl::StatusOr<std::unique_ptr<Batch>> Next() override;
  void Interrupt() override;
  void Recycle(std::unique_ptr<Batch> batch) override { pool_.Recycle(std::move(batch)); }
  absl::Status EndPass() override;
  Progress progress() const override { return meter_.Read(); }

 private:
  struct SampleRef {
    uint32_t block = 0;
    uint32_t row = 0;
  };

  absl::Status Load();
  absl::Status LoadFrom(OrderedReader& reader);
  void Keep(std::unique_ptr<SampleBlock> block);
  void ShuffleOrder(uint64_t pass);
  void Fill(uint64_t index, Batch* batch);

  // Constant after construction.
  const DatasetOptions options_;
  const FormatEntry& format_;

  // Changed between passes only.
  bool loaded_ = false;
  std::vector<std::unique_ptr<SampleBlock>> blocks_;
  std::vector<SampleRef> order_;
  uint64_t carried_bytes_ = 0;  // of blocks without a good sample: the next block's
  base::DataPosition done_;
  std::atomic<bool> in_pass_{false};

  base::Mutex loading_mu_;
  OrderedReader* loading_ ABSL_GUARDED_BY(loading_mu_) = nullptr;  // while Load runs

  std::atomic<uint64_t> next_batch_{0};
  BatchPool pool_;
  ProgressMeter meter_;
};

}  // namespace regatta::data
