// What a model declares: the slots it reads, its embeddings and its dense parameters. The composition root makes
// tables of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/pooling.h"
#include "data/batch.h"

namespace regatta::model {

// Initial values: uniform in [a, b], normal with mean a and deviation b, or constant a.
struct Init {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;

  static Init Constant(double value) { return {Kind::kConstant, value, 0}; }
  static Init Uniform(double range) { return {Kind::kUniform, -range, range}; }
  static Init Normal(double deviation) { return {Kind::kNormal, 0, deviation}; }
};

enum class DenseColumns : uint8_t { kApart, kAppended };

// A pooled lookup: a matrix of a row per sample, the slots' vectors side by side.
struct EmbeddingSpec {
  std::string table;
  int dim = 0;
  Init init;
  base::Pooling pooling = base::Pooling::kSum;
  // kAppended puts the batch's dense features behind the vectors, so that a network that reads both needs no copy.
  DenseColumns dense_columns = DenseColumns::kApart;
  // Adds l2 · w to the mean gradient of every row that a step touches.
  double l2 = 0;
};

struct DenseSpec {
  std::string name;
  std::vector<int64_t> shape;
  Init init;
};

struct ModelSpec {
  data::Schema schema;
  std::vector<EmbeddingSpec> embeddings;
  std::vector<DenseSpec> dense;

  // Both return the index by which Forward finds it.
  int AddEmbedding(EmbeddingSpec embedding) {
    embeddings.push_back(std::move(embedding));
    return static_cast<int>(embeddings.size()) - 1;
  }
  int AddDense(std::string name, std::vector<int64_t> shape, Init init) {
    dense.push_back({std::move(name), std::move(shape), init});
    return static_cast<int>(dense.size()) - 1;
  }

  int slots() const { return static_cast<int>(schema.sparse_slots.size()); }
  // Columns of an embedding's matrix.
  int64_t width(int embedding) const {
    const EmbeddingSpec& e = embeddings[embedding];
    return int64_t{slots()} * e.dim + (e.dense_columns == DenseColumns::kAppended ? schema.dense_dim : 0);
  }
};

}  // namespace regatta::model
