// Parses the files once, at the first pass, and gives batches from memory, shuffled by (seed, pass) where asked.
// Thread-safety: as Dataset says; Next builds batches of several threads at the same time.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "data/dataset.h"
#include "data/dataset_options.h"
#include "data/ordered_reader.h"

namespace regatta::data {

class InMemoryDataset final : public Dataset {
 public:
  InMemoryDataset(const DatasetOptions& options, const FormatEntry& format);

  absl::Status BeginPass(const base::DataPosition& done) override;
  absl::StatusOr<std::unique_ptr<Batch>> Next() override;
  void Recycle(std::unique_ptr<Batch> batch) override;
  absl::Status EndPass() override;
  Progress progress() const override;

 private:
  struct SampleRef {
    uint32_t block = 0;
    uint32_t row = 0;
  };

  absl::Status Load();
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

  std::atomic<uint64_t> next_batch_{0};
  base::Mutex spare_mu_;
  std::vector<std::unique_ptr<Batch>> spare_ ABSL_GUARDED_BY(spare_mu_);

  std::atomic<uint64_t> bytes_done_{0}, bytes_total_{0}, samples_{0}, bad_lines_{0};
  ReaderTimes reader_times_;
  std::atomic<int64_t> merge_nanos_{0}, wait_nanos_{0};
};

}  // namespace regatta::data
