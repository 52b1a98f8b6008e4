// The tables of a process that trains alone, and all that training needs of them: the communicator of the local mode,
// and the model to be saved and filled.
// Thread-safety: the communicator's own rules; the rest is for one thread while nobody trains, but for the counts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "checkpoint/local_model.h"
#include "client/local_client.h"
#include "comm/local.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::fleet {

class EmbeddedTables {
 public:
  static absl::StatusOr<std::unique_ptr<EmbeddedTables>> Create(const table::ModelConfig& configs,
                                                                table::NanPolicy nan_policy, int threads);

  // In order of the configurations.
  std::vector<table::SparseTable*> sparse() const;
  table::DenseTable* dense() const { return dense_.get(); }
  checkpoint::ModelTables Fillable() const { return {sparse(), dense_.get()}; }
  comm::Communicator& communicator() { return *communicator_; }
  checkpoint::ModelStore& model() { return *model_; }

  uint64_t rows() const;

 private:
  std::vector<std::unique_ptr<table::SparseTable>> sparse_;
  std::unique_ptr<table::DenseTable> dense_;
  std::unique_ptr<client::LocalClient> client_;
  std::unique_ptr<comm::Local> communicator_;
  std::unique_ptr<checkpoint::LocalModel> model_;
};

// Bytes that a row of the table takes with its share of the index.
uint64_t EstimateRowBytes(const table::SparseTable& table);

}  // namespace regatta::fleet
