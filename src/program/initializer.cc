#include "program/initializer.h"

#include <cmath>
#include <utility>

#include "program/append.h"

namespace regatta::program {

namespace {

// {in, out} of a matrix are its extents, of a vector its length twice. Further extents multiply both, and then the
// first two are {out, in}: a convolution's filter.
std::pair<double, double> FansOf(const Shape& shape) {
  if (shape.empty()) return {1, 1};
  if (shape.size() == 1) return {shape[0], shape[0]};
  if (shape.size() == 2) return {shape[0], shape[1]};
  const auto field = static_cast<double>(CountBetween(shape, 2, shape.size()));
  return {static_cast<double>(shape[1]) * field, static_cast<double>(shape[0]) * field};
}

// Xavier and MSRA as the uniform or normal distribution that they are for this shape.
Initializer Resolve(const Initializer& initializer, const Shape& shape) {
  using Kind = Initializer::Kind;
  if (initializer.kind != Kind::kXavier && initializer.kind != Kind::kMsra) return initializer;
  auto [in, out] = FansOf(shape);
  if (initializer.fan_in > 0) in = static_cast<double>(initializer.fan_in);
  if (initializer.fan_out > 0) out = static_cast<double>(initializer.fan_out);
  const double fans = initializer.kind == Kind::kXavier ? in + out : in;
  if (initializer.distribution == Initializer::Distribution::kNormal)
    return Initializer::Normal(0, std::sqrt(2.0 / fans), initializer.seed);
  const double limit = std::sqrt(6.0 / fans);
  return Initializer::Uniform(-limit, limit, initializer.seed);
}

// The attribute that holds values of a variable's type.
const char* ValuesAttribute(DataType type) {
  switch (type) {
    case DataType::kBool:
      return "bool_values";
    case DataType::kInt32:
      return "int32_values";
    case DataType::kInt64:
      return "int64_values";
    default:
      return "fp32_values";
  }
}

// assign_value has lists of four types; other integers and floats come through a cast when they are read.
Attribute ValuesOf(const Initializer& initializer, DataType type) {
  if (IsFloat(type)) {
    std::vector<double> values;
    std::visit([&](const auto& list) { values.assign(list.begin(), list.end()); }, initializer.values);
    return values;
  }
  std::vector<int64_t> values;
  std::visit([&](const auto& list) { values.assign(list.begin(), list.end()); }, initializer.values);
  return values;
}

Operation OperationOf(const Initializer& resolved, const Variable& variable, int64_t seed) {
  using Kind = Initializer::Kind;
  Operation operation;
  operation.outputs = {{"Out", {variable.name}}};
  Attributes& attributes = operation.attributes;
  attributes.Set("shape", variable.shape);
  attributes.Set("dtype", CodeOf(variable.dtype));
  switch (resolved.kind) {
    case Kind::kConstant:
      operation.type = "fill_constant";
      attributes.Set("value", resolved.a);
      return operation;
    case Kind::kUniform:
      operation.type = "uniform_random";
      attributes.Set("min", resolved.a);
      attributes.Set("max", resolved.b);
      break;
    case Kind::kValues:
      operation.type = "assign_value";
      attributes.Set(ValuesAttribute(variable.dtype), ValuesOf(resolved, variable.dtype));
      return operation;
    default:
      operation.type = resolved.kind == Kind::kNormal ? "gaussian_random" : "truncated_gaussian_random";
      attributes.Set("mean", resolved.a);
      attributes.Set("std", resolved.b);
  }
  attributes.Set("seed", resolved.seed != 0 ? resolved.seed : seed);
  return operation;
}

}  // namespace

absl::Status AppendInitializer(Block& block, const Variable& variable, const Initializer& initializer, int64_t seed,
                               const CallSite& site) {
  Operation operation = OperationOf(Resolve(initializer, variable.shape), variable, seed);
  operation.site = site;
  return AppendOperation(block, std::move(operation)).status();
}

}  // namespace regatta::program
