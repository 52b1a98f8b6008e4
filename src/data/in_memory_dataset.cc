#include "data/in_memory_dataset.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "data/bad_line_log.h"
#include "data/batch_copy.h"
#include "data/slot_use.h"

namespace regatta::data {

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
  block->ClearBad();
  const uint32_t index = static_cast<uint32_t>(blocks_.size());
  for (int row = 0; row < block->size; ++row) order_.push_back({index, static_cast<uint32_t>(row)});
  blocks_.push_back(std::move(block));
}

absl::Status InMemoryDataset::Load() {
  const auto start = ProgressMeter::Clock::now();
  blocks_.clear(), order_.clear();
  meter_.bad_lines = 0;
  carried_bytes_ = 0;
  OrderedReader reader(options_, format_, meter_);
  {
    base::MutexLock lock(loading_mu_);
    loading_ = &reader;
  }
  const absl::Status status = LoadFrom(reader);
  {
    base::MutexLock lock(loading_mu_);
    loading_ = nullptr;
  }
  ProgressMeter::AddSince(start, meter_.wait);
  return status;
}

void InMemoryDataset::Interrupt() {
  base::MutexLock lock(loading_mu_);
  if (loading_ != nullptr) loading_->Interrupt();
}

absl::Status InMemoryDataset::LoadFrom(OrderedReader& reader) {
  BadLineLog bad_lines(options_);
  SlotUse slot_use(options_, format_);
  RETURN_IF_ERROR(reader.Start());
  meter_.bytes_total = reader.bytes_total();
  while (true) {
    ASSIGN_OR_RETURN(std::unique_ptr<SampleBlock> block, reader.Next());
    if (block == nullptr) break;
    meter_.bad_lines += block->bad_lines;
    RETURN_IF_ERROR(bad_lines.Count(*block));
    RETURN_IF_ERROR(slot_use.Count(*block));
    Keep(std::move(block));
  }
  if (reader.stopped()) return absl::CancelledError("stopped while the data was loaded");
  order_.shrink_to_fit();
  if (order_.empty()) return bad_lines.NoGoodSample();
  RETURN_IF_ERROR(slot_use.Finish());
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
  meter_.bytes_done = meter_.samples = 0;
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
  std::unique_ptr<Batch> batch = pool_.Take();
  const auto start = ProgressMeter::Clock::now();
  Fill(index, batch.get());
  ProgressMeter::AddSince(start, meter_.merge);
  meter_.bytes_done += batch->bytes;
  meter_.samples += static_cast<uint64_t>(batch->size);
  return batch;
}

absl::Status InMemoryDataset::EndPass() {
  in_pass_ = false;
  return absl::OkStatus();
}

}  // namespace regatta::data
