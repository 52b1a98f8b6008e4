#include "checkpoint/schema_json.h"

#include <algorithm>
#include <type_traits>

#include "base/id_space.h"
#include "base/nearest.h"
#include "base/printable.h"

namespace regatta::checkpoint {
namespace {

constexpr size_t kMaxParameters = 4096;  // of a model

constexpr size_t kShown = 64;  // characters of a name that is not known

// The fields of each configuration, once, for writing and for reading.
template <typename Config, typename Fn>
void VisitRule(Config& c, Fn&& fn) {
  fn("name", c.name);
  fn("learning_rate", c.learning_rate);
  fn("initial_g2sum", c.initial_g2sum);
  fn("beta1", c.beta1);
  fn("beta2", c.beta2);
  fn("epsilon", c.epsilon);
  fn("momentum", c.momentum);
  fn("rho", c.rho);
  fn("alpha", c.alpha);
  fn("beta", c.beta);
  fn("lambda1", c.lambda1);
  fn("lambda2", c.lambda2);
  fn("bound", c.bound);
  fn("nesterov", c.nesterov);
  fn("centered", c.centered);
}
template <typename Config, typename Fn>
void VisitSchedule(Config& c, Fn&& fn) {
  fn("name", c.name);
  fn("decay_steps", c.decay_steps);
  fn("decay_rate", c.decay_rate);
  fn("staircase", c.staircase);
  fn("end_learning_rate", c.end_learning_rate);
  fn("power", c.power);
  fn("boundaries", c.boundaries);
  fn("values", c.values);
  fn("d_model", c.d_model);
  fn("warmup_steps", c.warmup_steps);
}
template <typename Config, typename Fn>
void VisitInitializer(Config& c, Fn&& fn) {
  fn("name", c.name);
  fn("a", c.a);
  fn("b", c.b);
}

template <typename Fn>
void Visit(const table::RuleConfig& c, Fn&& fn) {
  VisitRule(c, fn);
}
template <typename Fn>
void Visit(table::RuleConfig& c, Fn&& fn) {
  VisitRule(c, fn);
}
template <typename Fn>
void Visit(const table::ScheduleConfig& c, Fn&& fn) {
  VisitSchedule(c, fn);
}
template <typename Fn>
void Visit(table::ScheduleConfig& c, Fn&& fn) {
  VisitSchedule(c, fn);
}
template <typename Fn>
void Visit(const table::InitializerConfig& c, Fn&& fn) {
  VisitInitializer(c, fn);
}
template <typename Fn>
void Visit(table::InitializerConfig& c, Fn&& fn) {
  VisitInitializer(c, fn);
}

template <typename Config>
Json ObjectOf(const Config& config) {
  Json json = Json::object();
  Visit(config, [&](const char* name, const auto& value) { json[name] = value; });
  return json;
}

// That every field of `object` is one of `known`.
absl::Status CheckFields(const JsonTree& object, const std::string& where, UnknownFields unknown,
                         const std::vector<std::string>& known) {
  if (unknown == UnknownFields::kIgnore || !object.is_object()) return absl::OkStatus();
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = base::NearestName(name, known);
    return absl::InvalidArgumentError(absl::StrCat(where, ": unknown field '", base::Printable(name.substr(0, kShown)),
                                                   "'", nearest.empty() ? "" : "; did you mean " + nearest + "?"));
  }
  return absl::OkStatus();
}

template <typename Config>
absl::Status ReadObject(const JsonTree& parent, const char* name, const std::string& where, UnknownFields unknown,
                        Config& config) {
  if (!parent.is_object()) return WrongField(where, "an object");
  const auto it = parent.find(name);
  if (it == parent.end()) return absl::OkStatus();
  const std::string at = absl::StrCat(where, ".", name);
  absl::Status status;
  std::vector<std::string> known;
  Visit(config, [&](const char* field, auto& value) {
    known.emplace_back(field);
    if (status.ok()) status = OptionalField(*it, field, at, value);
  });
  return status.ok() ? CheckFields(*it, at, unknown, known) : status;
}

}  // namespace

// A shared id_space is left out, as in saves of versions that had no other.
Json ToJson(const table::SparseTableConfig& config) {
  Json json{{"name", config.name},
            {"dim", config.dim},
            {"accessor", config.accessor},
            {"rule", ObjectOf(config.rule)},
            {"schedule", ObjectOf(config.schedule)},
            {"init", ObjectOf(config.init)},
            {"seed", config.seed}};
  if (config.id_space != base::IdSpace::kShared) json["id_space"] = base::Name(config.id_space);
  return json;
}

Json ToJson(const table::DenseTableConfig& config) {
  Json parameters = Json::array();
  for (const table::DenseParameterConfig& p : config.parameters)
    parameters.push_back(Json{{"name", p.name}, {"shape", p.shape}, {"init", ObjectOf(p.init)}});
  return Json{{"name", config.name},
              {"parameters", std::move(parameters)},
              {"rule", ObjectOf(config.rule)},
              {"schedule", ObjectOf(config.schedule)},
              {"seed", config.seed}};
}

Json ToJson(const table::ModelConfig& config) {
  Json sparse = Json::array();
  for (const table::SparseTableConfig& table : config.sparse) sparse.push_back(ToJson(table));
  return Json{{"sparse", std::move(sparse)}, {"dense", ToJson(config.dense)}};
}

absl::StatusOr<table::SparseTableConfig> SparseConfigFromJson(const JsonTree& json, const std::string& where,
                                                              UnknownFields unknown) {
  table::SparseTableConfig config;
  RETURN_IF_ERROR(
      CheckFields(json, where, unknown, {"name", "dim", "accessor", "rule", "schedule", "init", "seed", "id_space"}));
  RETURN_IF_ERROR(RequiredField(json, "name", where, config.name));
  RETURN_IF_ERROR(RequiredField(json, "dim", where, config.dim));
  RETURN_IF_ERROR(OptionalField(json, "accessor", where, config.accessor));
  RETURN_IF_ERROR(ReadObject(json, "rule", where, unknown, config.rule));
  RETURN_IF_ERROR(ReadObject(json, "schedule", where, unknown, config.schedule));
  RETURN_IF_ERROR(ReadObject(json, "init", where, unknown, config.init));
  RETURN_IF_ERROR(OptionalField(json, "seed", where, config.seed));
  std::string id_space(base::Name(config.id_space));
  RETURN_IF_ERROR(OptionalField(json, "id_space", where, id_space));
  const auto named = std::find(base::kIdSpaceNames.begin(), base::kIdSpaceNames.end(), id_space);
  if (named == base::kIdSpaceNames.end()) return WrongField(absl::StrCat(where, ".id_space"), "shared or slot");
  config.id_space = static_cast<base::IdSpace>(named - base::kIdSpaceNames.begin());
  return config;
}

absl::StatusOr<table::DenseTableConfig> DenseConfigFromJson(const JsonTree& json, const std::string& where,
                                                            UnknownFields unknown) {
  table::DenseTableConfig config;
  RETURN_IF_ERROR(CheckFields(json, where, unknown, {"name", "parameters", "rule", "schedule", "seed"}));
  RETURN_IF_ERROR(OptionalField(json, "name", where, config.name));
  ASSIGN_OR_RETURN(const JsonTree* parameters, RequiredChild(json, "parameters", where, JsonTree::value_t::array));
  for (const JsonTree& item : *parameters) {
    table::DenseParameterConfig p;
    const std::string at = absl::StrCat(where, ".parameters[", config.parameters.size(), "]");
    RETURN_IF_ERROR(CheckFields(item, at, unknown, {"name", "shape", "init"}));
    RETURN_IF_ERROR(RequiredField(item, "name", at, p.name));
    RETURN_IF_ERROR(RequiredField(item, "shape", at, p.shape));
    RETURN_IF_ERROR(ReadObject(item, "init", at, unknown, p.init));
    config.parameters.push_back(std::move(p));
  }
  RETURN_IF_ERROR(ReadObject(json, "rule", where, unknown, config.rule));
  RETURN_IF_ERROR(ReadObject(json, "schedule", where, unknown, config.schedule));
  RETURN_IF_ERROR(OptionalField(json, "seed", where, config.seed));
  return config;
}

absl::StatusOr<table::ModelConfig> ModelConfigFromJson(const JsonTree& json, const std::string& where,
                                                       UnknownFields unknown) {
  table::ModelConfig config;
  RETURN_IF_ERROR(CheckFields(json, where, unknown, {"sparse", "dense"}));
  ASSIGN_OR_RETURN(const JsonTree* sparse, RequiredChild(json, "sparse", where, JsonTree::value_t::array));
  for (const JsonTree& item : *sparse) {
    ASSIGN_OR_RETURN(table::SparseTableConfig table,
                     SparseConfigFromJson(item, absl::StrCat(where, ".sparse[", config.sparse.size(), "]"), unknown));
    config.sparse.push_back(std::move(table));
  }
  ASSIGN_OR_RETURN(const JsonTree* dense, RequiredChild(json, "dense", where, JsonTree::value_t::object));
  ASSIGN_OR_RETURN(config.dense, DenseConfigFromJson(*dense, where + ".dense", unknown));
  return config;
}

// `labels` is left out if there is one label, as in saves of versions that knew no more; `label` is the first.
Json ToJson(const ModelIdentity& model) {
  Json parameters = Json::object();
  for (const auto& [key, value] : model.hyper_parameters) parameters[key] = value;
  const SavedSchema& schema = model.schema;
  Json read{{"label", schema.labels.empty() ? "" : schema.labels.front()},
            {"sparse_slots", schema.sparse_slots},
            {"dense_slot", schema.dense_slot},
            {"dense_dim", schema.dense_dim},
            {"value_slot", schema.value_slot}};
  if (schema.labels.size() > 1) read["labels"] = schema.labels;
  return Json{{"front_end", model.front_end},
              {"name", model.name},
              {"hyper_parameters", parameters},
              {"schema", std::move(read)}};
}

absl::StatusOr<ModelIdentity> ModelIdentityFromJson(const JsonTree& json, const std::string& where) {
  ModelIdentity model;
  RETURN_IF_ERROR(RequiredField(json, "front_end", where, model.front_end));
  RETURN_IF_ERROR(RequiredField(json, "name", where, model.name));
  ASSIGN_OR_RETURN(const JsonTree* parameters,
                   RequiredChild(json, "hyper_parameters", where, JsonTree::value_t::object));
  if (parameters->size() > kMaxParameters)
    return WrongField(where + ".hyper_parameters", absl::StrCat("at most ", kMaxParameters));
  for (const auto& [key, value] : parameters->items())
    RETURN_IF_ERROR(
        FromJson(value, absl::StrCat(where, ".hyper_parameters.", key), model.hyper_parameters[std::string(key)]));
  ASSIGN_OR_RETURN(const JsonTree* schema, RequiredChild(json, "schema", where, JsonTree::value_t::object));
  const std::string at = where + ".schema";
  std::string label;
  RETURN_IF_ERROR(RequiredField(*schema, "label", at, label));
  RETURN_IF_ERROR(OptionalField(*schema, "labels", at, model.schema.labels));
  if (model.schema.labels.empty()) model.schema.labels = {label};
  RETURN_IF_ERROR(RequiredField(*schema, "sparse_slots", at, model.schema.sparse_slots));
  RETURN_IF_ERROR(RequiredField(*schema, "dense_slot", at, model.schema.dense_slot));
  RETURN_IF_ERROR(RequiredField(*schema, "dense_dim", at, model.schema.dense_dim));
  RETURN_IF_ERROR(RequiredField(*schema, "value_slot", at, model.schema.value_slot));
  return model;
}

}  // namespace regatta::checkpoint
