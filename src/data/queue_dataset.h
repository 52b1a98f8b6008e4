// Streams the files: memory is bounded by the readers' buffers whatever the size of the input.
// Thread-safety: as Dataset says.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "data/bad_line_log.h"
#include "data/dataset.h"
#include "data/dataset_options.h"
#include "data/ordered_reader.h"

namespace regatta::data {

class QueueDataset final : public Dataset {
 public:
  QueueDataset(const DatasetOptions& options, const FormatEntry& format);

  absl::Status BeginPass(const base::DataPosition& done) override;
  absl::StatusOr<std::unique_ptr<Batch>> Next() override;
  void Recycle(std::unique_ptr<Batch> batch) override;
  absl::Status EndPass() override;
  Progress progress() const override;

 private:
  std::unique_ptr<Batch> FreshBatch();
  // Fills `batch`, or only passes over its samples. The number of samples.
  absl::StatusOr<int> Take(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mu_);
  absl::StatusOr<bool> NextBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mu_);

  // Constant after construction.
  const DatasetOptions options_;
  const FormatEntry& format_;

  // One thread at a time makes a batch.
  base::Mutex merge_mu_;
  std::unique_ptr<OrderedReader> reader_;  // replaced between passes only
  std::unique_ptr<BadLineLog> bad_lines_ ABSL_GUARDED_BY(merge_mu_);
  std::unique_ptr<SampleBlock> block_ ABSL_GUARDED_BY(merge_mu_);
  int block_at_ ABSL_GUARDED_BY(merge_mu_) = 0;  // samples of block_ that are used up
  uint64_t carried_bytes_ ABSL_GUARDED_BY(merge_mu_) = 0;
  base::DataPosition done_ ABSL_GUARDED_BY(merge_mu_);
  uint64_t next_batch_ ABSL_GUARDED_BY(merge_mu_) = 0;
  bool at_end_ ABSL_GUARDED_BY(merge_mu_) = true;     // no more batches
  bool read_all_ ABSL_GUARDED_BY(merge_mu_) = false;  // because every file was read
  absl::Status status_ ABSL_GUARDED_BY(merge_mu_);    // sticky for the pass

  base::Mutex spare_mu_;
  std::vector<std::unique_ptr<Batch>> spare_ ABSL_GUARDED_BY(spare_mu_);

  std::atomic<uint64_t> bytes_done_{0}, bytes_total_{0}, samples_{0}, bad_count_{0};
  ReaderTimes reader_times_;
  std::atomic<int64_t> merge_nanos_{0}, wait_nanos_{0};
};

}  // namespace regatta::data
