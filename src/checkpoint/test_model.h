// A small model for the tests of checkpoints: two sparse tables and a dense one, filled with any bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/key.h"
#include "base/random.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/local_model.h"
#include "gtest/gtest.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::checkpoint {

using RowBits = std::map<base::Key, std::vector<uint32_t>>;

inline RowBits BitsOf(const table::SparseTable& table) {
  RowBits all;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
    table.ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
      std::vector<uint32_t>& bits = all[key];
      bits.resize(row.size());
      std::memcpy(bits.data(), row.data(), row.size_bytes());
    });
  }
  return all;
}

inline void SetRow(table::SparseTable& table, base::Key key, const std::vector<uint32_t>& bits) {
  std::vector<float> row(static_cast<size_t>(table.row_width()));
  ASSERT_LE(bits.size(), row.size());
  std::ranges::transform(bits, row.begin(), [](uint32_t b) { return std::bit_cast<float>(b); });
  ASSERT_TRUE(table.Load(base::ShardOf(key), {&key, 1}, row).ok());
}

// Random keys; every bit pattern alike: NaNs, infinities, denormals and both zeros among them.
inline void FillRandom(table::SparseTable& table, uint64_t keys, uint64_t seed) {
  base::Rng rng(seed);
  for (uint64_t i = 0; i < keys; ++i) {
    const base::Key key = rng();
    std::vector<uint32_t> bits(static_cast<size_t>(table.row_width()));
    for (size_t at = 0; at < bits.size(); at += 2) {
      const uint64_t two = rng();
      std::memcpy(&bits[at], &two, std::min<size_t>(bits.size() - at, 2) * sizeof(uint32_t));
    }
    SetRow(table, key, bits);
  }
}

class TestModel {
 public:
  explicit TestModel(int dim = 5, std::vector<int64_t> shape = {7, 3}, std::string rule = "adam") {
    table::SparseTableConfig embedding;
    embedding.name = "embedding";
    embedding.dim = dim;
    embedding.rule.name = rule;
    embedding.seed = ~uint64_t{0};
    sparse.push_back(table::SparseTable::Create(embedding).value());
    table::SparseTableConfig wide;
    wide.name = "wide";
    wide.dim = 1;
    wide.rule.name = "sgd";
    sparse.push_back(table::SparseTable::Create(wide).value());
    table::DenseTableConfig config;
    config.rule.name = rule;
    config.parameters = {{"fc.weight", std::move(shape), {}}, {"fc.bias", {3}, {}}, {"scale", {1}, {}}};
    dense = table::DenseTable::Create(config).value();
  }
  void FillRandom(uint64_t keys, uint64_t seed) {
    checkpoint::FillRandom(*sparse[0], keys, seed);
    checkpoint::FillRandom(*sparse[1], keys / 2, seed + 1);
    FillDense(seed + 2);
  }
  void FillDense(uint64_t seed) {
    base::Rng rng(seed);
    std::vector<std::vector<float>> arrays(static_cast<size_t>(1 + dense->state_count()));
    for (auto& array : arrays)
      for (int64_t i = 0; i < dense->size(); ++i) array.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng())));
    ASSERT_TRUE(dense->Load(arrays[0], std::span(arrays).subspan(1), rng()).ok());
  }
  ModelView view() const { return {{sparse[0].get(), sparse[1].get()}, dense.get()}; }
  ModelTables tables() const { return {{sparse[0].get(), sparse[1].get()}, dense.get()}; }
  LocalModel& store() const {
    if (store_ == nullptr) store_ = std::make_unique<LocalModel>(tables());
    return *store_;
  }

  std::vector<uint32_t> DenseBits() const {
    std::vector<uint32_t> all;
    for (float f : dense->Values()) all.push_back(std::bit_cast<uint32_t>(f));
    for (int i = 0; i < dense->state_count(); ++i)
      for (float f : dense->State(i)) all.push_back(std::bit_cast<uint32_t>(f));
    return all;
  }
  bool SameBits(const TestModel& other) const {
    return BitsOf(*sparse[0]) == BitsOf(*other.sparse[0]) && BitsOf(*sparse[1]) == BitsOf(*other.sparse[1]) &&
           DenseBits() == other.DenseBits() && dense->updates() == other.dense->updates();
  }

  std::vector<std::unique_ptr<table::SparseTable>> sparse;
  std::unique_ptr<table::DenseTable> dense;

 private:
  mutable std::unique_ptr<LocalModel> store_;
};

}  // namespace regatta::checkpoint
