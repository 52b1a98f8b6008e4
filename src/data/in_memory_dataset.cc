#include "data/in_memory_dataset.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "data/bad_line_log.h"
#include "data/batch_copy.h"

namespace regatta::data {
namespace {

using Clock = std::chrono::steady_clock;

int64_t NanosSince(Clock::time_point start) { return std::chrono::nanoseconds(Clock::now() - start).count(); }

}  // namespace

InMemoryDataset::InMemoryDataset(const DatasetOptions& options, const FormatEntry& format)
    : options_(options), format_(format) {}

void InMemoryDataset::Keep(std::unique_ptr<SampleBlock> block) {
  if (block->size == 0) {
    carried_bytes_ += block->disk_bytes;
    return;
  }
  block->disk_bytes += std::exchange(carried_bytes_, 0);
  block->keys.ShrinkToFit(), block->ends.ShrinkToFit(), block->values.ShrinkToFit(), block->dense.ShrinkToFit();
  block->labels.ShrinkToFit(), block->weights.ShrinkToFit(), block->users.ShrinkToFit();
  block->bad.clear();
  const uint32_t index = static_cast<uint32_t>(blocks_.size());
  for (int row = 0; row < block->size; ++row) order_.push_back({index, static_cast<uint32_t>(row)});
  blocks_.push_back(std::move(block));
}

absl::Status InMemoryDataset::Load() {
  const Clock::time_point start = Clock::now();
  blocks_.clear(), order_.clear();
  bad_lines_ = 0;
  carried_bytes_ = 0;
  OrderedReader reader(options_, format_, reader_times_);
  BadLineLog bad_lines(options_);
  RETURN_IF_ERROR(reader.Start());
  bytes_total_ = reader.bytes_total();
  while (true) {
    ASSIGN_OR_RETURN(std::unique_ptr<SampleBlock> block, reader.Next());
    if (block == nullptr) break;
    bad_lines_ += block->bad_lines;
    RETURN_IF_ERROR(bad_lines.Count(*block));
    Keep(std::move(block));
  }
  order_.shrink_to_fit();
  wait_nanos_ += NanosSince(start);
  if (order_.empty()) return bad_lines.NoGoodSample();
  loaded_ = true;
  return absl::OkStatus();
}

// From the order of the files, so that a pass's order depends on nothing but (seed, pass).
void InMemoryDataset::ShuffleOrder(uint64_t pass) {
  size_t at = 0;
  for (uint32_t block = 0; block < blocks_.size(); ++block)
    for (int row = 0; row < blocks_[block]->size; ++row) order_[at++] = {block, static_cast<uint32_t>(row)};
  base::Rng rng(base::Combine64(options_.seed, pass));
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng.Below(i)]);
}

absl::Status InMemoryDataset::BeginPass(const base::DataPosition& done) {
  if (!loaded_) RETURN_IF_ERROR(Load());
  if (options_.shuffle == Shuffle::kLocal) ShuffleOrder(done.pass);
  done_ = done;
  next_batch_ = 0;
  bytes_done_ = samples_ = 0;
  in_pass_ = true;
  return absl::OkStatus();
}

void InMemoryDataset::Fill(uint64_t index, Batch* batch) {
  const uint64_t begin = index * static_cast<uint64_t>(options_.batch_size);
  const uint64_t end = std::min<uint64_t>(begin + static_cast<uint64_t>(options_.batch_size), order_.size());
  ReserveLike(*blocks_[order_[begin].block], options_.batch_size, batch);
  for (uint64_t at = begin; at < end;) {
    const SampleRef ref = order_[at];
    uint64_t run = 1;
    while (at + run < end && order_[at + run].block == ref.block && order_[at + run].row == ref.row + run) ++run;
    AppendSamples(*blocks_[ref.block], static_cast<int>(ref.row), static_cast<int>(run), batch);
    at += run;
  }
  batch->pass = done_.pass;
  batch->index = index;
}

absl::StatusOr<std::unique_ptr<Batch>> InMemoryDataset::Next() {
  if (!in_pass_) return nullptr;
  uint64_t index;
  do {
    index = next_batch_.fetch_add(1);
    if (index * static_cast<uint64_t>(options_.batch_size) >= order_.size()) return nullptr;
  } while (done_.Contains(index));
  std::unique_ptr<Batch> batch;
  {
    base::MutexLock lock(spare_mu_);
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (batch == nullptr) batch = std::make_unique<Batch>();
  const Clock::time_point start = Clock::now();
  Fill(index, batch.get());
  merge_nanos_ += NanosSince(start);
  bytes_done_ += batch->bytes;
  samples_ += static_cast<uint64_t>(batch->size);
  return batch;
}

void InMemoryDataset::Recycle(std::unique_ptr<Batch> batch) {
  batch->Clear();
  base::MutexLock lock(spare_mu_);
  spare_.push_back(std::move(batch));
}

absl::Status InMemoryDataset::EndPass() {
  in_pass_ = false;
  return absl::OkStatus();
}

Progress InMemoryDataset::progress() const {
  auto seconds = [](const std::atomic<int64_t>& nanos) { return static_cast<double>(nanos.load()) * 1e-9; };
  Progress progress;
  progress.bytes_done = bytes_done_;
  progress.bytes_total = bytes_total_;
  progress.samples = samples_;
  progress.bad_lines = bad_lines_;
  progress.read_seconds = seconds(reader_times_.read);
  progress.parse_seconds = seconds(reader_times_.parse);
  progress.blocked_seconds = seconds(reader_times_.blocked);
  progress.merge_seconds = seconds(merge_nanos_);
  progress.wait_seconds = seconds(wait_nanos_);
  return progress;
}

}  // namespace regatta::data
