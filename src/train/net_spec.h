// What a net declares: the slots it reads, its lookups and its dense parameters. Tables are made of it.
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/pooling.h"
#include "base/status.h"
#include "data/batch.h"

namespace regatta::train {

// What a net's output is, and so what is measured of it. kBinary: the probability of a label from 0 to 1; AUC, log loss
// and more. kRegression: an estimate of a label that may be any finite number; MSE, MAE and RMSE.
enum class Metric : uint8_t { kBinary, kRegression };

struct OutputSpec {
  std::string name = "prediction";  // letters, digits, '_', '-' and '.'; reports of several outputs use it
  Metric metric = Metric::kBinary;
  std::string label = {};  // the name in Schema::labels of what it is measured against; empty = the first
};

// Initial values: uniform in [a, b], normal with mean a and deviation b, or constant a.
struct Init {
  enum class Kind : uint8_t { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;

  static Init Constant(double value) { return {Kind::kConstant, value, 0}; }
  static Init Uniform(double range) { return {Kind::kUniform, -range, range}; }
  static Init Normal(double deviation) { return {Kind::kNormal, 0, deviation}; }
  friend bool operator==(const Init&, const Init&) = default;
};

enum class DenseColumns : uint8_t { kApart, kAppended };

// Rows of a table by the ids of some slots. Pooled: a matrix of a row per sample, the slots' vectors side by side. With
// Pooling::kNone: a row for each id, and offsets. Lookups may share a table; they then agree on dim, init and l2.
struct LookupSpec {
  std::string table;
  int dim = 0;
  Init init;
  base::Pooling pooling = base::Pooling::kSum;
  // kAppended puts the batch's dense features behind the vectors, so that a network that reads both needs no copy.
  DenseColumns dense_columns = DenseColumns::kApart;
  // Adds l2 · w to the mean gradient of every row that a step touches.
  double l2 = 0;
  // Names of Schema::sparse_slots, in the order of the columns. Empty = all of them.
  std::vector<std::string> slots = {};
};

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;  // at most base::TensorView::kMaxDims extents
  Init init;

  int64_t count() const {
    int64_t n = 1;
    for (const int64_t extent : shape) n *= extent;
    return n;
  }
};

struct NetSpec {
  std::string name;  // for messages
  data::Schema schema;
  std::vector<LookupSpec> lookups;
  std::vector<ParameterSpec> dense;
  std::vector<OutputSpec> outputs = {OutputSpec{}};  // in the order of the predictions

  // Both return the index by which Forward finds it.
  int AddEmbedding(LookupSpec lookup) {
    lookups.push_back(std::move(lookup));
    return static_cast<int>(lookups.size()) - 1;
  }
  int AddDense(std::string parameter, std::vector<int64_t> shape, Init init) {
    dense.push_back({std::move(parameter), std::move(shape), init});
    return static_cast<int>(dense.size()) - 1;
  }

  int slots() const { return static_cast<int>(schema.sparse_slots.size()); }
  // Columns of a lookup's matrix: of a sample's row, or without pooling of an id's.
  int64_t width(int lookup) const;
  // A lookup's slots as places in Schema::sparse_slots.
  std::vector<int> SlotsOf(int lookup) const;
  // The label of an output as a place in Schema::labels.
  int LabelOf(const OutputSpec& output) const;
  // The schema as data is read by it: a label that a regression output and no binary one is measured against may be
  // any finite number. A label without an output is as the schema says.
  data::Schema DataSchema() const;
};

// INVALID_ARGUMENT says what the net declares ("it declares …") that cannot be.
absl::Status CheckNetSpec(const NetSpec& spec);

}  // namespace regatta::train
