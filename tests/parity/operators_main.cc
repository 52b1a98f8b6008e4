// Runs single operators for tests/parity/operators_test.py. A line of stdin is a case as JSON, a line of stdout its
// result:
//   {"type": "relu", "inputs": {"X": [{"shape": [2], "dtype": "float64", "data": [-1, 2]}]},
//    "outputs": {"Out": 1}, "attributes": {}, "gradient_of": "Out", "weights": [1, 1], "gradient_to": ["X"]}
//   {"outputs": {"Out": [{"shape": [2], "data": [0, 2]}]}, "gradients": {"X": […]}}   or   {"error": "…"}
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "exec/executor.h"
#include "exec/tensor_type.h"
#include "program/append.h"
#include "program/backward.h"

namespace {

using nlohmann::json;
using regatta::exec::Lod;
using regatta::exec::NamedValue;
using regatta::exec::Scope;
using regatta::exec::SelectedRows;
using regatta::exec::Value;
using regatta::program::Attribute;
using regatta::program::DataType;
using regatta::program::Operation;
using regatta::program::Variable;

torch::Tensor ToTensor(const json& text) {
  const auto shape = text.at("shape").get<std::vector<int64_t>>();
  const DataType type = *regatta::program::DataTypeNamed(text.value("dtype", "float64"));
  const auto data = text.at("data").get<std::vector<double>>();
  return at::tensor(data, torch::kFloat64).reshape(shape).to(regatta::exec::ToScalarType(type));
}

absl::StatusOr<Value> ToValue(const json& text) {
  if (text.contains("rows")) {
    const auto rows = text["rows"].get<std::vector<int64_t>>();
    return Value(SelectedRows{at::tensor(rows, torch::kInt64), ToTensor(text), text["height"].get<int64_t>()});
  }
  torch::Tensor tensor = ToTensor(text);
  ASSIGN_OR_RETURN(Lod lod, Lod::Make(text.value("lod", std::vector<std::vector<int64_t>>()), tensor.size(0)));
  return Value(std::move(tensor), std::move(lod));
}

json ToJson(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.to(torch::kFloat64).contiguous().view({-1});
  const std::vector<double> data(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  return {{"shape", tensor.sizes().vec()}, {"data", data}};
}

json ToJson(const Value& value) {
  if (const SelectedRows* rows = value.rows()) {
    json text = ToJson(rows->values);
    text["rows"] = ToJson(rows->rows)["data"];
    text["height"] = rows->height;
    return text;
  }
  json text = ToJson(value.dense()->tensor);
  for (size_t i = 0; i < value.dense()->lod.size(); ++i) text["lod"].push_back(value.dense()->lod.level(i));
  return text;
}

Attribute ToAttribute(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.empty() && value[0].is_string()) return value.get<std::vector<std::string>>();
  if (!value.empty() && value[0].is_number_float()) return value.get<std::vector<double>>();
  return value.get<std::vector<int64_t>>();
}

// A program of the one operator, its inputs fed, and if gradients are asked for their backward pass.
class Case {
 public:
  explicit Case(const json& text) : text_(text) {}

  absl::StatusOr<json> Run() {
    RETURN_IF_ERROR(AddOperation());
    RETURN_IF_ERROR(AddGradients());
    Scope scope;
    ASSIGN_OR_RETURN(const std::vector<Value> fetched, regatta::exec::RunProgram(main_, scope, feeds_, Concatenated()));
    json result = {{"outputs", json::object()}, {"gradients", json::object()}};
    for (size_t i = 0; i < outputs_.size(); ++i) result["outputs"][outputs_[i].first].push_back(ToJson(fetched[i]));
    for (size_t i = 0; i < gradients_.size(); ++i)
      result["gradients"][gradients_[i].first].push_back(ToJson(fetched[outputs_.size() + i]));
    return result;
  }

 private:
  using NamedVariables = std::vector<std::pair<std::string, std::string>>;  // slot, variable

  absl::StatusOr<std::string> AddInput(const std::string& slot, const json& text) {
    NamedValue feed{absl::StrCat("in_", slot, "_", feeds_.size()), {}};
    ASSIGN_OR_RETURN(feed.value, ToValue(text));
    Variable variable;
    variable.name = feed.name;
    variable.shape = text.at("shape").get<std::vector<int64_t>>();
    variable.dtype = *regatta::program::DataTypeNamed(text.value("dtype", "float64"));
    variable.lod_level = static_cast<int>(text.value("lod", json::array()).size());
    variable.is_data = true;
    if (text.contains("rows")) {
      variable.kind = regatta::program::VariableKind::kSelectedRows;
      variable.shape[0] = text["height"].get<int64_t>();
    }
    RETURN_IF_ERROR(main_.global_block().AddVariable(variable).status());
    feeds_.push_back(std::move(feed));
    return feeds_.back().name;
  }

  absl::Status AddOperation() {
    Operation operation;
    operation.type = text_.at("type").get<std::string>();
    for (const auto& [slot, values] : text_.at("inputs").items()) {
      operation.inputs.push_back({slot, {}});
      for (const json& value : values) {
        ASSIGN_OR_RETURN(const std::string name, AddInput(slot, value));
        operation.inputs.back().variables.push_back(name);
        inputs_.emplace_back(slot, name);
      }
    }
    for (const auto& [slot, count] : text_.at("outputs").items()) {
      operation.outputs.push_back({slot, {}});
      for (int i = 0; i < count.get<int>(); ++i) {
        Variable variable;
        variable.name = absl::StrCat("out_", slot, "_", i);
        variable.dtype = DataType::kFloat64;
        RETURN_IF_ERROR(main_.global_block().AddVariable(variable).status());
        operation.outputs.back().variables.push_back(variable.name);
        outputs_.emplace_back(slot, variable.name);
      }
    }
    const json attributes = text_.value("attributes", json::object());
    for (const auto& [name, value] : attributes.items()) operation.attributes.Set(name, ToAttribute(value));
    return AppendOperation(main_.global_block(), std::move(operation)).status();
  }

  absl::Status AddGradients() {
    if (!text_.contains("gradient_of")) return absl::OkStatus();
    regatta::program::Block& block = main_.global_block();
    Variable* target = block.Find(absl::StrCat("out_", text_["gradient_of"].get<std::string>(), "_0"));
    json weights = text_.at("weights");
    ASSIGN_OR_RETURN(const std::string weight_name, AddInput("weights", weights));
    std::vector<Variable*> sources;
    for (const auto& [slot, name] : inputs_) {
      const auto& wanted = text_.at("gradient_to");
      if (std::find(wanted.begin(), wanted.end(), slot) == wanted.end()) continue;
      gradients_.emplace_back(slot, "");
      sources.push_back(block.Find(name));
    }
    ASSIGN_OR_RETURN(const std::vector<Variable*> made,
                     AppendGradients(builder_, {target}, sources, {block.Find(weight_name)}));
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i] == nullptr) return absl::InternalError(absl::StrCat("no gradient to ", sources[i]->name));
      gradients_[i].second = made[i]->name;
    }
    return absl::OkStatus();
  }

  std::vector<std::string> Concatenated() const {
    std::vector<std::string> names;
    for (const NamedVariables* list : {&outputs_, &gradients_})
      for (const auto& [slot, name] : *list) names.push_back(name);
    return names;
  }

  const json& text_;
  regatta::program::Program main_;
  regatta::program::Program startup_;
  regatta::program::NameGenerator names_;
  regatta::program::ProgramBuilder builder_{main_, startup_, names_};
  std::vector<NamedValue> feeds_;
  NamedVariables inputs_;
  NamedVariables outputs_;
  NamedVariables gradients_;
};

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const json text = json::parse(line);
    absl::StatusOr<json> result = Case(text).Run();
    if (!result.ok()) result = json{{"error", std::string(result.status().message())}};
    std::cout << result->dump() << "\n";
  }
  return 0;
}
