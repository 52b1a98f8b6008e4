// The tables of a model: its declarations turned into table configurations, and the tables made of them.
// Thread-safety: plain values.
#pragma once

#include <memory>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "model/spec.h"
#include "runner/run_config.h"
#include "table/checkpoint/checkpoint_reader.h"
#include "table/checkpoint/checkpoint_writer.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::worker {

// Sparse tables are in order of ModelSpec::embeddings.
absl::StatusOr<table::ModelConfig> ConfigureTables(const model::ModelSpec& spec, const runner::RunConfig& run,
                                                   base::Config& config, runner::Remarks& remarks);

class ModelTableSet {
 public:
  static absl::StatusOr<ModelTableSet> Create(const table::ModelConfig& configs);

  std::vector<table::SparseTable*> sparse() const;
  table::DenseTable* dense() const { return dense_.get(); }
  table::ModelTables Fillable() const;
  uint64_t rows() const;
  uint64_t memory_bytes() const;
  uint64_t skipped_gradients() const;

 private:
  std::vector<std::unique_ptr<table::SparseTable>> sparse_;
  std::unique_ptr<table::DenseTable> dense_;
};

// Bytes that a row of the table takes with its share of the index.
uint64_t EstimateRowBytes(const table::SparseTable& table);

}  // namespace regatta::worker
