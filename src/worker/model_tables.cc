#include "worker/model_tables.h"

#include "runner/table_parameters.h"

namespace regatta::worker {
namespace {

table::InitializerConfig ToInitializer(const model::Init& init) {
  switch (init.kind) {
    case model::Init::Kind::kConstant:
      return {"constant", init.a, 0};
    case model::Init::Kind::kUniform:
      return {"uniform", init.a, init.b};
    case model::Init::Kind::kNormal:
      return {"normal", init.a, init.b};
  }
  return {};
}

}  // namespace

absl::StatusOr<table::ModelConfig> ConfigureTables(const model::ModelSpec& spec, const runner::RunConfig& run,
                                                   base::Config& config, runner::Remarks& remarks) {
  table::ModelConfig configs;
  const auto seed = static_cast<uint64_t>(run.runner.seed);
  for (const model::EmbeddingSpec& embedding : spec.embeddings) {
    ASSIGN_OR_RETURN(const runner::TableRule rule,
                     runner::RuleFor(config, embedding.table, run.optimizer.sparse, remarks));
    table::SparseTableConfig table;
    table.name = embedding.table;
    table.dim = embedding.dim;
    table.rule = rule.rule;
    table.schedule = run.optimizer.schedule;
    table.init = ToInitializer(embedding.init);
    if (rule.initial_range.has_value()) table.init = {"uniform", -*rule.initial_range, *rule.initial_range};
    table.seed = seed;
    configs.sparse.push_back(std::move(table));
  }
  configs.dense.rule = run.optimizer.dense;
  configs.dense.schedule = run.optimizer.schedule;
  configs.dense.seed = seed;
  for (const model::DenseSpec& dense : spec.dense)
    configs.dense.parameters.push_back({dense.name, dense.shape, ToInitializer(dense.init)});
  return configs;
}

absl::StatusOr<ModelTableSet> ModelTableSet::Create(const table::ModelConfig& configs) {
  ModelTableSet set;
  for (const table::SparseTableConfig& config : configs.sparse) {
    auto table = table::SparseTable::Create(config);
    if (!table.ok()) return base::Annotate(table.status(), absl::StrCat("table ", config.name));
    set.sparse_.push_back(*std::move(table));
  }
  ASSIGN_OR_RETURN(set.dense_, table::DenseTable::Create(configs.dense));
  return set;
}

std::vector<table::SparseTable*> ModelTableSet::sparse() const {
  std::vector<table::SparseTable*> tables;
  for (const auto& table : sparse_) tables.push_back(table.get());
  return tables;
}

table::ModelTables ModelTableSet::Fillable() const { return {sparse(), dense_.get()}; }

uint64_t ModelTableSet::rows() const {
  uint64_t rows = 0;
  for (const auto& table : sparse_) rows += table->rows();
  return rows;
}

uint64_t ModelTableSet::memory_bytes() const {
  uint64_t bytes = sizeof(float) * dense_->size() * (1 + dense_->state_count());
  for (const auto& table : sparse_) bytes += table->memory_bytes();
  return bytes;
}

uint64_t ModelTableSet::skipped_gradients() const {
  uint64_t skipped = 0;
  for (const auto& table : sparse_) skipped += table->skipped_gradients();
  return skipped;
}

uint64_t EstimateRowBytes(const table::SparseTable& table) {
  constexpr uint64_t kIndexBytes = 24;  // 16-byte entries at two thirds full
  return sizeof(float) * table.row_width() + kIndexBytes;
}

}  // namespace regatta::worker
