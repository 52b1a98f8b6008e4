#include "data/queue_dataset.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "data/batch_copy.h"

namespace regatta::data {
namespace {

using Clock = std::chrono::steady_clock;

int64_t NanosSince(Clock::time_point start) { return std::chrono::nanoseconds(Clock::now() - start).count(); }

}  // namespace

QueueDataset::QueueDataset(const DatasetOptions& options, const FormatEntry& format)
    : options_(options), format_(format) {}

absl::Status QueueDataset::BeginPass(const base::DataPosition& done) {
  reader_ = std::make_unique<OrderedReader>(options_, format_, reader_times_);
  {
    base::MutexLock lock(merge_mu_);
    bad_lines_ = std::make_unique<BadLineLog>(options_);
    block_ = nullptr;
    block_at_ = 0;
    done_ = done;
    next_batch_ = carried_bytes_ = 0;
    at_end_ = true;  // until the readers run
    read_all_ = false;
    status_ = absl::OkStatus();
  }
  bytes_done_ = samples_ = bad_count_ = 0;
  merge_nanos_ = wait_nanos_ = 0;
  reader_times_.read = reader_times_.parse = reader_times_.blocked = 0;
  RETURN_IF_ERROR(reader_->Start());
  bytes_total_ = reader_->bytes_total();
  base::MutexLock lock(merge_mu_);
  at_end_ = false;
  return absl::OkStatus();
}

absl::StatusOr<bool> QueueDataset::NextBlock() {
  if (block_ != nullptr) reader_->Recycle(std::move(block_));
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(block_, reader_->Next());
  wait_nanos_ += NanosSince(start);
  block_at_ = 0;
  if (block_ == nullptr) {
    read_all_ = !reader_->stopped();
    return false;
  }
  bytes_done_ += block_->disk_bytes;
  samples_ += static_cast<uint64_t>(block_->size);
  bad_count_ += block_->bad_lines;
  RETURN_IF_ERROR(bad_lines_->Count(*block_));
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
      const Clock::time_point start = Clock::now();
      if (batch->size == 0) ReserveLike(*block_, options_.batch_size, batch);
      AppendSamples(*block_, block_at_, count, batch);
      merge_nanos_ += NanosSince(start);
    }
    block_at_ += count;
    taken += count;
  }
  return taken;
}

absl::StatusOr<std::unique_ptr<Batch>> QueueDataset::Next() {
  std::unique_ptr<Batch> batch = FreshBatch();
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

std::unique_ptr<Batch> QueueDataset::FreshBatch() {
  base::MutexLock lock(spare_mu_);
  if (spare_.empty()) return std::make_unique<Batch>();
  std::unique_ptr<Batch> batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

void QueueDataset::Recycle(std::unique_ptr<Batch> batch) {
  batch->Clear();
  base::MutexLock lock(spare_mu_);
  spare_.push_back(std::move(batch));
}

absl::Status QueueDataset::EndPass() {
  if (reader_ == nullptr) return absl::OkStatus();
  reader_->Stop();
  base::MutexLock lock(merge_mu_);
  RETURN_IF_ERROR(status_);
  if (read_all_ && samples_ == 0) return bad_lines_->NoGoodSample();
  at_end_ = true;
  return absl::OkStatus();
}

Progress QueueDataset::progress() const {
  Progress progress;
  progress.bytes_done = bytes_done_;
  progress.bytes_total = bytes_total_;
  progress.samples = samples_;
  progress.bad_lines = bad_count_;
  auto seconds = [](const std::atomic<int64_t>& nanos) { return static_cast<double>(nanos.load()) * 1e-9; };
  progress.read_seconds = seconds(reader_times_.read);
  progress.parse_seconds = seconds(reader_times_.parse);
  progress.blocked_seconds = seconds(reader_times_.blocked);
  progress.merge_seconds = seconds(merge_nanos_);
  progress.wait_seconds = seconds(wait_nanos_);
  return progress;
}

}  // namespace regatta::data
