// Streams the files: memory is bounded by the readers' buffers whatever the size of the input.
// Thread-safety: as Dataset says.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "data/bad_line_log.h"
#include "data/batch_pool.h"
#include "data/dataset.h"
#include "data/dataset_options.h"
#include "data/ordered_reader.h"
#include "data/progress_meter.h"
#include "data/slot_use.h"

namespace regatta::data {

class QueueDataset final : public Dataset {
 public:
  QueueDataset(const DatasetOptions& options, const FormatEntry& format);

  absl::Status BeginPass(const base::DataPosition& done) override;
  absl::StatusOr<std::unique_ptr<Batch>> Next() override;
  void Interrupt() override;
  void Recycle(std::unique_ptr<Batch> batch) override { pool_.Recycle(std::move(batch)); }
  absl::Status EndPass() override;
  Progress progress() const override { return meter_.Read(); }

 private:
  // Fills `batch`, or only passes over its samples. The number of samples.
  absl::StatusOr<int> Take(Batch* batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mu_);
  absl::StatusOr<bool> NextBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(merge_mu_);

  // Constant after construction.
  const DatasetOptions options_;
  const FormatEntry& format_;

  BatchPool pool_;
  ProgressMeter meter_;

  // One thread at a time makes a batch.
  base::Mutex merge_mu_;
  std::unique_ptr<OrderedReader> reader_;  // replaced between passes only, under reader_mu_
  base::Mutex reader_mu_;                  // so that Interrupt may come while a pass begins
  std::unique_ptr<BadLineLog> bad_lines_ ABSL_GUARDED_BY(merge_mu_);
  std::unique_ptr<SlotUse> slot_use_ ABSL_GUARDED_BY(merge_mu_);  // until a pass has read every file
  bool slots_known_ ABSL_GUARDED_BY(merge_mu_) = false;           // one has
  std::unique_ptr<SampleBlock> block_ ABSL_GUARDED_BY(merge_mu_);
  int block_at_ ABSL_GUARDED_BY(merge_mu_) = 0;  // samples of block_ that are used up
  uint64_t carried_bytes_ ABSL_GUARDED_BY(merge_mu_) = 0;
  base::DataPosition done_ ABSL_GUARDED_BY(merge_mu_);
  uint64_t next_batch_ ABSL_GUARDED_BY(merge_mu_) = 0;
  bool at_end_ ABSL_GUARDED_BY(merge_mu_) = true;     // no more batches
  bool read_all_ ABSL_GUARDED_BY(merge_mu_) = false;  // because every file was read
  absl::Status status_ ABSL_GUARDED_BY(merge_mu_);    // sticky for the pass
};

}  // namespace regatta::data
