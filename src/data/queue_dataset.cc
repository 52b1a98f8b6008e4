#include "data/queue_dataset.h"

#include <algorithm>
#include <utility>

#include "data/batch_copy.h"

namespace regatta::data {

QueueDataset::QueueDataset(const DatasetOptions& options, const FormatEntry& format)
    : options_(options), format_(format) {}

absl::Status QueueDataset::BeginPass(const base::DataPosition& done) {
  {
    base::MutexLock lock(reader_mu_);
    reader_ = std::make_unique<OrderedReader>(options_, format_, meter_);
  }
  {
    base::MutexLock lock(merge_mu_);
    bad_lines_ = std::make_unique<BadLineLog>(options_);
    slot_use_ = slots_known_ ? nullptr : std::make_unique<SlotUse>(options_, format_);
    block_ = nullptr;
    block_at_ = 0;
    done_ = done;
    next_batch_ = carried_bytes_ = 0;
    at_end_ = true;  // until the readers run
    read_all_ = false;
    status_ = absl::OkStatus();
  }
  meter_.bytes_done = meter_.samples = meter_.bad_lines = 0;
  meter_.read = meter_.parse = meter_.blocked = meter_.merge = meter_.wait = 0;
  RETURN_IF_ERROR(reader_->Start());
  meter_.bytes_total = reader_->bytes_total();
  base::MutexLock lock(merge_mu_);
  at_end_ = false;
  return absl::OkStatus();
}

absl::StatusOr<bool> QueueDataset::NextBlock() {
  if (block_ != nullptr) reader_->Recycle(std::move(block_));
  const auto start = ProgressMeter::Clock::now();
  ASSIGN_OR_RETURN(block_, reader_->Next());
  ProgressMeter::AddSince(start, meter_.wait);
  block_at_ = 0;
  if (block_ == nullptr) {
    read_all_ = !reader_->stopped();
    return false;
  }
  meter_.bytes_done += block_->disk_bytes;
  meter_.samples += static_cast<uint64_t>(block_->size);
  meter_.bad_lines += block_->bad_lines;
  RETURN_IF_ERROR(bad_lines_->Count(*block_));
  if (slot_use_ != nullptr) RETURN_IF_ERROR(slot_use_->Count(*block_));
  // The bytes of blocks without a good sample count for the next one.
  if (block_->size == 0) {
    carried_bytes_ += block_->disk_bytes;
  } else {
    block_->disk_bytes += std::exchange(carried_bytes_, 0);
  }
  return true;
}

absl::StatusOr<int> QueueDataset::Take(Batch* batch) {
  int taken = 0;
  while (taken < options_.batch_size) {
    if (block_ == nullptr || block_at_ == block_->size) {
      ASSIGN_OR_RETURN(const bool more, NextBlock());
      if (!more) break;
      continue;
    }
    const int count = std::min(options_.batch_size - taken, block_->size - block_at_);
    if (batch != nullptr) {
      const auto start = ProgressMeter::Clock::now();
      if (batch->size == 0) ReserveLike(*block_, options_.batch_size, batch);
      AppendSamples(*block_, block_at_, count, batch);
      ProgressMeter::AddSince(start, meter_.merge);
    }
    block_at_ += count;
    taken += count;
  }
  return taken;
}

absl::StatusOr<std::unique_ptr<Batch>> QueueDataset::Next() {
  std::unique_ptr<Batch> batch = pool_.Take();
  base::MutexLock lock(merge_mu_);
  RETURN_IF_ERROR(status_);
  while (!at_end_) {
    const bool learnt = done_.Contains(next_batch_);
    const absl::StatusOr<int> taken = Take(learnt ? nullptr : batch.get());
    if (!taken.ok()) {
      at_end_ = true;
      status_ = taken.status();
      return status_;
    }
    at_end_ = *taken < options_.batch_size;
    // After a Stop the batch in the making is a fragment.
    if (*taken == 0 || (at_end_ && reader_->stopped())) break;
    const uint64_t index = next_batch_++;
    if (learnt) continue;
    batch->pass = done_.pass;
    batch->index = index;
    return batch;
  }
  return nullptr;
}

void QueueDataset::Interrupt() {
  base::MutexLock lock(reader_mu_);
  if (reader_ != nullptr) reader_->Interrupt();
}

absl::Status QueueDataset::EndPass() {
  if (reader_ == nullptr) return absl::OkStatus();
  reader_->Stop();
  base::MutexLock lock(merge_mu_);
  RETURN_IF_ERROR(status_);
  if (read_all_ && meter_.samples == 0) return bad_lines_->NoGoodSample();
  if (read_all_ && slot_use_ != nullptr) {
    RETURN_IF_ERROR(slot_use_->Finish());
    slots_known_ = true;
  }
  at_end_ = true;
  return absl::OkStatus();
}

}  // namespace regatta::data
