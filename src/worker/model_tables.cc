#include "worker/model_tables.h"

#include <string>

#include "settings/table_parameters.h"
#include "train/lookup_layout.h"

namespace regatta::worker {
namespace {

table::InitializerConfig ToInitializer(const train::Init& init) {
  switch (init.kind) {
    case train::Init::Kind::kConstant:
      return {"constant", init.a, 0};
    case train::Init::Kind::kUniform:
      return {"uniform", init.a, init.b};
    case train::Init::Kind::kNormal:
      return {"normal", init.a, init.b};
  }
  return {};
}

}  // namespace

checkpoint::SavedSchema SavedSchemaOf(const data::Schema& schema) {
  return {schema.labels, schema.sparse_slots, schema.dense_slot, schema.dense_dim, schema.value_slot};
}

absl::StatusOr<table::ModelConfig> TablesOf(const train::NetSpec& spec, const settings::OptimizerOptions& optimizer,
                                            uint64_t seed) {
  table::ModelConfig configs;
  RETURN_IF_ERROR(base::Annotate(train::CheckNetSpec(spec), "the model"));
  for (const train::LookupLayout::Table& declared : train::LookupLayout(spec).tables) {
    const train::LookupSpec& embedding = spec.lookups[static_cast<size_t>(declared.lookups.front())];
    table::SparseTableConfig table;
    table.name = embedding.table;
    table.dim = embedding.dim;
    table.rule = optimizer.sparse;
    table.schedule = optimizer.schedule;
    table.init = ToInitializer(embedding.init);
    table.seed = seed;
    table.id_space = spec.schema.id_space;
    configs.sparse.push_back(std::move(table));
  }
  configs.dense.rule = optimizer.dense;
  configs.dense.schedule = optimizer.schedule;
  configs.dense.seed = seed;
  for (const train::ParameterSpec& dense : spec.dense)
    configs.dense.parameters.push_back({dense.name, dense.shape, ToInitializer(dense.init)});
  return configs;
}

absl::StatusOr<table::ModelConfig> ConfigureTables(const train::NetSpec& spec, const settings::RunConfig& run,
                                                   base::Config& config, settings::Remarks& remarks) {
  ASSIGN_OR_RETURN(table::ModelConfig configs, TablesOf(spec, run.optimizer, static_cast<uint64_t>(run.runner.seed)));
  for (table::SparseTableConfig& table : configs.sparse) {
    ASSIGN_OR_RETURN(const settings::TableRule rule,
                     settings::RuleFor(config, table.name, run.optimizer.sparse, remarks));
    table.rule = rule.rule;
    table.id_space = run.runner.id_space;
    if (run.optimizer.schedule.name == "piecewise" && rule.rule.learning_rate != run.optimizer.sparse.learning_rate)
      remarks.warnings.push_back(absl::StrCat("table_parameters.", table.name,
                                              ".embedx_sgd_param.learning_rate has no effect: lr_schedule piecewise "
                                              "gives every table the learning rates of its values"));
    if (rule.initial_range.has_value()) table.init = {"uniform", -*rule.initial_range, *rule.initial_range};
  }
  return configs;
}

}  // namespace regatta::worker
