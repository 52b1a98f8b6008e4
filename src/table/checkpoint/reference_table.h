// Tables for the tests of checkpoints: a map and a few vectors, so that nothing but the checkpoint is under test.
// Thread-safety: Load and ForEachRow of different shards are concurrent, as in the real tables.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/key.h"
#include "base/random.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::table {

class ReferenceSparse final : public SparseTable {
 public:
  ReferenceSparse(SparseTableConfig config, int state) : config_(std::move(config)), state_(state) {}

  const SparseTableConfig& config() const override { return config_; }
  int pull_width() const override { return config_.dim; }
  int push_width() const override { return config_.dim; }
  int row_width() const override { return config_.dim + state_; }
  absl::Status Pull(const base::TableKeys&, base::StepKind, base::RowsView<float>) const override {
    return absl::UnimplementedError("no pulls here");
  }
  absl::Status Push(const base::TableGrads&, const PushOptions&) override {
    return absl::UnimplementedError("no pushes here");
  }
  uint64_t rows() const override {
    uint64_t n = 0;
    for (const auto& shard : shards_) n += shard.size();
    return n;
  }
  uint64_t memory_bytes() const override { return 0; }
  uint64_t skipped_gradients() const override { return 0; }
  // Descending, so that only a writer that sorts gives ascending keys.
  void ForEachRow(uint32_t shard, const RowFn& fn) const override {
    for (auto it = shards_[shard].rbegin(); it != shards_[shard].rend(); ++it) fn(it->first, it->second);
  }
  uint64_t ShardRows(uint32_t shard) const override { return shards_[shard].size(); }
  absl::Status Load(uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows) override {
    const size_t width = static_cast<size_t>(row_width());
    for (size_t i = 0; i < keys.size(); ++i)
      shards_[shard][keys[i]].assign(rows.begin() + i * width, rows.begin() + (i + 1) * width);
    return absl::OkStatus();
  }
  void Clear() override {
    for (auto& shard : shards_) shard.clear();
  }

  std::vector<float>& Row(base::Key key) {
    std::vector<float>& row = shards_[base::ShardOf(key)][key];
    row.resize(static_cast<size_t>(row_width()));
    return row;
  }
  // Every bit pattern alike: NaNs, infinities, denormals and both zeros among them.
  void FillRandom(uint64_t keys, uint64_t seed) {
    base::Rng rng(seed);
    for (uint64_t i = 0; i < keys; ++i)
      for (float& f : Row(rng())) f = std::bit_cast<float>(static_cast<uint32_t>(rng()));
  }
  // All rows with the bits of their floats.
  std::map<base::Key, std::vector<uint32_t>> Bits() const {
    std::map<base::Key, std::vector<uint32_t>> all;
    for (const auto& shard : shards_)
      for (const auto& [key, row] : shard)
        for (float f : row) all[key].push_back(std::bit_cast<uint32_t>(f));
    return all;
  }

 private:
  const SparseTableConfig config_;
  const int state_;
  std::vector<std::map<base::Key, std::vector<float>>> shards_{base::kVirtualShards};
};

class ReferenceDense final : public DenseTable {
 public:
  ReferenceDense(DenseTableConfig config, int states) : config_(std::move(config)), states_(states) {
    offsets_.push_back(0);
    for (const auto& p : config_.parameters) offsets_.push_back(offsets_.back() + p.size());
    values_.resize(static_cast<size_t>(size()));
    for (auto& state : states_) state.resize(values_.size());
  }

  const DenseTableConfig& config() const override { return config_; }
  int64_t size() const override { return offsets_.back(); }
  std::span<const int64_t> offsets() const override { return offsets_; }
  std::span<const float> Values() const override { return values_; }
  void Snapshot(std::span<float> out) const override { std::copy(values_.begin(), values_.end(), out.begin()); }
  absl::Status Push(std::span<const base::DenseGrad>, const PushOptions&) override {
    return absl::UnimplementedError("no pushes here");
  }
  uint64_t updates() const override { return updates_; }
  int state_count() const override { return static_cast<int>(states_.size()); }
  std::span<const float> State(int i) const override { return states_[static_cast<size_t>(i)]; }
  absl::Status Load(std::span<const float> values, std::span<const std::vector<float>> states,
                    uint64_t updates) override {
    values_.assign(values.begin(), values.end());
    states_.assign(states.begin(), states.end());
    updates_ = updates;
    return absl::OkStatus();
  }

  void FillRandom(uint64_t seed) {
    base::Rng rng(seed);
    for (float& f : values_) f = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    for (auto& state : states_)
      for (float& f : state) f = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    updates_ = rng();
  }
  std::vector<uint32_t> Bits() const {
    std::vector<uint32_t> all;
    for (float f : values_) all.push_back(std::bit_cast<uint32_t>(f));
    for (const auto& state : states_)
      for (float f : state) all.push_back(std::bit_cast<uint32_t>(f));
    all.push_back(static_cast<uint32_t>(updates_));
    all.push_back(static_cast<uint32_t>(updates_ >> 32));
    return all;
  }

 private:
  const DenseTableConfig config_;
  std::vector<int64_t> offsets_;
  std::vector<float> values_;
  std::vector<std::vector<float>> states_;
  uint64_t updates_ = 0;
};

// A model of two sparse tables and a dense one.
struct ReferenceModel {
  explicit ReferenceModel(int dim = 5, std::vector<int64_t> shape = {7, 3}, std::string rule = "adam") {
    SparseTableConfig embedding;
    embedding.name = "embedding";
    embedding.dim = dim;
    embedding.rule.name = rule;
    embedding.seed = ~uint64_t{0};
    sparse.push_back(std::make_unique<ReferenceSparse>(embedding, rule == "adam" ? 2 * dim + 2 : 0));
    SparseTableConfig wide;
    wide.name = "wide";
    wide.dim = 1;
    wide.rule.name = "sgd";
    sparse.push_back(std::make_unique<ReferenceSparse>(wide, 0));
    DenseTableConfig config;
    config.rule.name = rule;
    config.parameters = {{"fc.weight", std::move(shape), {}}, {"fc.bias", {3}, {}}, {"scale", {}, {}}};
    dense = std::make_unique<ReferenceDense>(config, rule == "adam" ? 2 : 0);
  }
  void FillRandom(uint64_t keys, uint64_t seed) {
    sparse[0]->FillRandom(keys, seed);
    sparse[1]->FillRandom(keys / 2, seed + 1);
    dense->FillRandom(seed + 2);
  }
  std::vector<const SparseTable*> ConstTables() const { return {sparse[0].get(), sparse[1].get()}; }
  std::vector<SparseTable*> Tables() const { return {sparse[0].get(), sparse[1].get()}; }
  bool SameBits(const ReferenceModel& other) const {
    return sparse[0]->Bits() == other.sparse[0]->Bits() && sparse[1]->Bits() == other.sparse[1]->Bits() &&
           dense->Bits() == other.dense->Bits();
  }

  std::vector<std::unique_ptr<ReferenceSparse>> sparse;
  std::unique_ptr<ReferenceDense> dense;
};

}  // namespace regatta::table
