#include "fleet/embedded_tables.h"

namespace regatta::fleet {

absl::StatusOr<std::unique_ptr<EmbeddedTables>> EmbeddedTables::Create(const table::ModelConfig& configs,
                                                                       table::NanPolicy nan_policy, int threads) {
  auto tables = std::make_unique<EmbeddedTables>();
  for (const table::SparseTableConfig& config : configs.sparse) {
    ASSIGN_OR_RETURN(auto table, table::SparseTable::Create(config));
    tables->sparse_.push_back(std::move(table));
  }
  ASSIGN_OR_RETURN(tables->dense_, table::DenseTable::Create(configs.dense));
  tables->client_ = std::make_unique<client::LocalClient>(tables->sparse(), tables->dense_.get(), nan_policy);
  tables->communicator_ = std::make_unique<comm::Local>(*tables->client_, threads);
  tables->model_ = std::make_unique<checkpoint::LocalModel>(tables->Fillable());
  return tables;
}

std::vector<table::SparseTable*> EmbeddedTables::sparse() const {
  std::vector<table::SparseTable*> tables;
  for (const auto& table : sparse_) tables.push_back(table.get());
  return tables;
}

uint64_t EmbeddedTables::rows() const {
  uint64_t rows = 0;
  for (const auto& table : sparse_) rows += table->rows();
  return rows;
}

uint64_t EstimateRowBytes(const table::SparseTable& table) {
  constexpr uint64_t kIndexBytes = 24;  // 16-byte entries at two thirds full
  return sizeof(float) * table.row_width() + kIndexBytes;
}

}  // namespace regatta::fleet
