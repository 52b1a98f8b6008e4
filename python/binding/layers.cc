#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "binding/attribute.h"
#include "binding/bind.h"
#include "binding/keywords.h"
#include "binding/status.h"
#include "program/backward.h"
#include "program/layers/dense.h"
#include "program/layers/loss.h"
#include "program/layers/metric.h"
#include "program/layers/normalization.h"
#include "program/layers/sequence.h"
#include "program/optimizers/optimizer.h"
#include "program/program_builder.h"

namespace regatta::binding {
namespace {

namespace nb = nanobind;
using program::Initializer;
using program::ParameterAttributes;
using program::ProgramBuilder;
using program::Variable;

using Variables = std::vector<Variable*>;

// {"kind": "uniform", "a": -1, "b": 1, …}
Initializer InitializerOf(const nb::dict& given) {
  const nb::kwargs words = nb::borrow<nb::kwargs>(given);
  const Keywords keywords(words);
  std::string kind;
  bool uniform = true;
  Initializer made;
  keywords.Take("kind", kind);
  keywords.Take("a", made.a);
  keywords.Take("b", made.b);
  keywords.Take("uniform", uniform);
  keywords.Take("fan_in", made.fan_in);
  keywords.Take("fan_out", made.fan_out);
  keywords.Take("seed", made.seed);
  using Kind = Initializer::Kind;
  const std::pair<const char*, Kind> kinds[] = {
      {"constant", Kind::kConstant}, {"uniform", Kind::kUniform},
      {"normal", Kind::kNormal},     {"truncated_normal", Kind::kTruncatedNormal},
      {"xavier", Kind::kXavier},     {"msra", Kind::kMsra},
      {"values", Kind::kValues}};
  for (const auto& [name, value] : kinds)
    if (kind == name) made.kind = value;
  made.distribution = uniform ? Initializer::Distribution::kUniform : Initializer::Distribution::kNormal;
  std::vector<double> floats;
  std::vector<int64_t> integers;
  keywords.Take("floats", floats);
  keywords.Take("integers", integers);
  if (!floats.empty()) made.values = std::move(floats);
  if (!integers.empty()) made.values = std::move(integers);
  return made;
}

program::Regularizer RegularizerOf(const nb::dict& given) {
  const nb::kwargs words = nb::borrow<nb::kwargs>(given);
  const Keywords keywords(words);
  bool is_l1 = false;
  program::Regularizer made;
  keywords.Take("l1", is_l1);
  keywords.Take("coefficient", made.coefficient);
  made.kind = is_l1 ? program::Regularizer::Kind::kL1 : program::Regularizer::Kind::kL2;
  return made;
}

program::GradientClip ClipOf(const nb::dict& given) {
  const nb::kwargs words = nb::borrow<nb::kwargs>(given);
  const Keywords keywords(words);
  std::string kind;
  program::GradientClip made;
  keywords.Take("kind", kind);
  keywords.Take("low", made.low);
  keywords.Take("high", made.high);
  keywords.Take("limit", made.limit);
  keywords.Take("group", made.group);
  using Kind = program::GradientClip::Kind;
  made.kind = kind == "value" ? Kind::kValue : kind == "norm" ? Kind::kNorm : Kind::kGlobalNorm;
  return made;
}

template <typename T, typename Make>
void TakeDict(const Keywords& keywords, const char* name, std::optional<T>& out, const Make& make) {
  std::optional<nb::dict> given;
  keywords.Take(name, given);
  if (given.has_value()) out = make(*given);
}

// As fluid.ParamAttr gives it: a dict; False for none.
ParameterAttributes ParameterOf(nb::handle given) {
  ParameterAttributes made;
  if (given.is_none()) return made;
  if (!nb::isinstance<nb::dict>(given)) {
    made.wanted = false;
    return made;
  }
  const nb::kwargs words = nb::borrow<nb::kwargs>(given);
  const Keywords keywords(words);
  keywords.Take("name", made.name);
  keywords.Take("trainable", made.traits.trainable);
  keywords.Take("learning_rate", made.traits.learning_rate);
  TakeDict(keywords, "initializer", made.initializer, &InitializerOf);
  TakeDict(keywords, "regularizer", made.traits.regularizer, &RegularizerOf);
  TakeDict(keywords, "gradient_clip", made.traits.gradient_clip, &ClipOf);
  return made;
}

void TakeParameter(const nb::kwargs& given, const char* name, ParameterAttributes& out) {
  if (given.contains(name)) out = ParameterOf(given[name]);
}

program::Arguments ArgumentsOf(const nb::dict& slots) {
  program::Arguments out;
  for (const auto& [name, variables] : slots)
    out.emplace_back(nb::cast<std::string>(name), nb::cast<Variables>(variables));
  return out;
}

Variable* Data(ProgramBuilder& builder, const std::string& name, const program::Shape& shape, const std::string& dtype,
               const nb::kwargs& given) {
  program::layers::DataOptions options{.shape = shape};
  const auto type = program::DataTypeNamed(dtype);
  if (!type.has_value()) Raise(builder.Error(absl::StrCat("dtype '", dtype, "': there is none")));
  options.dtype = *type;
  const Keywords keywords(given);
  keywords.Take("lod_level", options.lod_level);
  keywords.Take("append_batch_size", options.append_batch_size);
  keywords.Take("stop_gradient", options.stop_gradient);
  return ValueOf(program::layers::Data(builder, name, options));
}

Variable* Fc(ProgramBuilder& builder, const Variables& inputs, const nb::kwargs& given) {
  program::layers::FcOptions options;
  const Keywords keywords(given);
  keywords.Take("size", options.size);
  keywords.Take("num_flatten_dims", options.num_flatten_dims);
  keywords.Take("activation", options.activation);
  keywords.Take("name", options.name);
  std::vector<nb::object> weights;
  keywords.Take("weights", weights);
  if (!weights.empty()) options.weights.clear();
  for (const nb::object& weight : weights) options.weights.push_back(ParameterOf(weight));
  TakeParameter(given, "bias", options.bias);
  return ValueOf(program::layers::Fc(builder, inputs, options));
}

Variable* Embedding(ProgramBuilder& builder, Variable* ids, const program::Shape& size, const nb::kwargs& given) {
  program::layers::EmbeddingOptions options{.size = size};
  const Keywords keywords(given);
  keywords.Take("is_sparse", options.is_sparse);
  keywords.Take("is_distributed", options.is_distributed);
  keywords.Take("padding_idx", options.padding_idx);
  TakeParameter(given, "weight", options.weight);
  std::string dtype = "float32";
  bool as_they_are = false;
  keywords.Take("dtype", dtype);
  keywords.Take("as_they_are", as_they_are);
  const auto type = program::DataTypeNamed(dtype);
  if (!type.has_value()) Raise(builder.Error(absl::StrCat("dtype '", dtype, "': there is none")));
  options.dtype = *type;
  if (as_they_are) options.ids_shape = program::layers::IdsShape::kAsTheyAre;
  return ValueOf(program::layers::Embedding(builder, ids, options));
}

Variable* Dropout(ProgramBuilder& builder, Variable* x, const nb::kwargs& given) {
  program::layers::DropoutOptions options;
  const Keywords keywords(given);
  keywords.Take("probability", options.probability);
  keywords.Take("is_test", options.is_test);
  keywords.Take("seed", options.seed);
  keywords.Take("implementation", options.implementation);
  keywords.Take("name", options.name);
  return ValueOf(program::layers::Dropout(builder, x, options));
}

nb::tuple Auc(ProgramBuilder& builder, Variable* input, Variable* label, const std::string& curve,
              int64_t num_thresholds, int64_t slide_steps) {
  const program::layers::Auc made = ValueOf(program::layers::AucOf(
      builder, input, label, {.curve = curve, .num_thresholds = num_thresholds, .slide_steps = slide_steps}));
  const Variables states(made.states.begin(), made.states.end());
  return nb::make_tuple(nb::cast(made.auc, nb::rv_policy::reference),
                        nb::cast(made.batch_auc, nb::rv_policy::reference), nb::cast(states, nb::rv_policy::reference));
}

using Gradients = std::vector<std::pair<Variable*, Variable*>>;

Gradients PairsOf(const std::vector<program::ParameterGradient>& gradients) {
  Gradients out;
  for (const auto& each : gradients) out.emplace_back(each.parameter, each.gradient);
  return out;
}

Gradients AppendBackward(ProgramBuilder& builder, Variable* loss, const std::vector<std::string>& parameters,
                         const std::vector<std::string>& no_gradient) {
  const program::NameSet names(no_gradient.begin(), no_gradient.end());
  return PairsOf(ValueOf(program::AppendBackward(builder, loss, parameters, names)));
}

// An optimizer of fluid.optimizer: `rate` is a number or a variable.
program::Optimizer MakeOptimizer(const std::string& type, nb::handle rate, const nb::dict& arguments,
                                 const nb::kwargs& given) {
  program::OptimizerOptions options{.type = type};
  Variable* scheduled = nullptr;
  if (nb::try_cast(rate, scheduled) && scheduled != nullptr) {
    options.learning_rate = scheduled;
  } else {
    options.learning_rate = nb::cast<double>(rate);
  }
  options.arguments = AttributesOf(arguments);
  const Keywords keywords(given);
  TakeDict(keywords, "regularizer", options.regularizer, &RegularizerOf);
  TakeDict(keywords, "gradient_clip", options.gradient_clip, &ClipOf);
  keywords.Take("name", options.name);
  return ValueOf(program::Optimizer::Make(std::move(options)));
}

std::pair<std::vector<program::Operation*>, Gradients> Minimize(program::Optimizer& optimizer, ProgramBuilder& builder,
                                                                Variable* loss,
                                                                const std::vector<std::string>& parameters,
                                                                const std::vector<std::string>& no_gradient) {
  const program::NameSet names(no_gradient.begin(), no_gradient.end());
  program::Minimized made = ValueOf(optimizer.Minimize(builder, loss, parameters, names));
  return {std::move(made.operations), PairsOf(made.gradients)};
}

}  // namespace

void BindLayers(nb::module_& m) {
  const auto inside = nb::rv_policy::reference;  // of programs, which the builder's owner keeps
  nb::class_<ProgramBuilder>(m, "Builder", "Appends layers to a main program and its startup program.")
      .def(nb::init<program::Program&, program::Program&, program::NameGenerator&>(), nb::arg("main"),
           nb::arg("startup"), nb::arg("names"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
      .def(
          "at",
          [](ProgramBuilder& builder, const std::string& layer, const std::string& file, int line) {
            builder.set_site({layer, file, line});
          },
          nb::arg("layer"), nb::arg("file"), nb::arg("line"), "The call that operations come from.")
      .def(
          "append",
          [](ProgramBuilder& builder, const std::string& type, const nb::dict& inputs, const nb::dict& outputs,
             const nb::dict& attributes) {
            return ValueOf(builder.Append(type, ArgumentsOf(inputs), ArgumentsOf(outputs), AttributesOf(attributes)));
          },
          nb::arg("type"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("attributes"), inside)
      .def(
          "apply",
          [](ProgramBuilder& builder, const std::string& type, const nb::dict& inputs, const nb::dict& attributes,
             const std::string& output, const std::string& activation, const std::string& name) {
            program::LayerCall call(builder, type, name);
            Variable* out = ValueOf(call.Apply(type, ArgumentsOf(inputs), AttributesOf(attributes), output));
            return ValueOf(call.Activate(activation, out));
          },
          nb::arg("type"), nb::arg("inputs"), nb::arg("attributes"), nb::arg("output") = "Out",
          nb::arg("activation") = "", nb::arg("name") = "", inside, "A layer that is one operator with one output.")
      .def(
          "variable",
          [](ProgramBuilder& builder, const std::string& key, const std::string& dtype) {
            const auto type = program::DataTypeNamed(dtype);
            if (!type.has_value()) Raise(builder.Error(absl::StrCat("dtype '", dtype, "': there is none")));
            return ValueOf(builder.CreateVariable(key, *type));
          },
          nb::arg("key"), nb::arg("dtype"), inside)
      .def("data", &Data, nb::arg("name"), nb::arg("shape"), nb::arg("dtype"), nb::arg("options"), inside)
      .def("fc", &Fc, nb::arg("inputs"), nb::arg("options"), inside)
      .def("embedding", &Embedding, nb::arg("ids"), nb::arg("size"), nb::arg("options"), inside)
      .def(
          "square_error_cost",
          [](ProgramBuilder& builder, Variable* input, Variable* label) {
            return ValueOf(program::layers::SquareErrorCost(builder, input, label));
          },
          nb::arg("input"), nb::arg("label"), inside)
      .def(
          "cross_entropy",
          [](ProgramBuilder& builder, Variable* input, Variable* label, bool soft_label, int64_t ignore_index) {
            return ValueOf(program::layers::CrossEntropy(builder, input, label,
                                                         {.soft_label = soft_label, .ignore_index = ignore_index}));
          },
          nb::arg("input"), nb::arg("label"), nb::arg("soft_label"), nb::arg("ignore_index"), inside)
      .def(
          "accuracy",
          [](ProgramBuilder& builder, Variable* input, Variable* label, int64_t k) {
            return ValueOf(program::layers::Accuracy(builder, input, label, k));
          },
          nb::arg("input"), nb::arg("label"), nb::arg("k"), inside)
      .def("auc", &Auc, nb::arg("input"), nb::arg("label"), nb::arg("curve"), nb::arg("num_thresholds"),
           nb::arg("slide_steps"))
      .def(
          "sequence_pool",
          [](ProgramBuilder& builder, Variable* input, const std::string& type, bool is_test, double pad_value) {
            return ValueOf(program::layers::SequencePool(builder, input, type, is_test, pad_value));
          },
          nb::arg("input"), nb::arg("type"), nb::arg("is_test"), nb::arg("pad_value"), inside)
      .def("dropout", &Dropout, nb::arg("x"), nb::arg("options"), inside)
      .def("append_backward", &AppendBackward, nb::arg("loss"), nb::arg("parameters"), nb::arg("no_gradient"), inside);
  nb::class_<program::Optimizer>(m, "Optimizer", "Adds to a program what trains it.")
      .def(nb::new_([](const std::string& type, nb::handle rate, const nb::dict& arguments, const nb::kwargs& given) {
             return new program::Optimizer(MakeOptimizer(type, rate, arguments, given));
           }),
           nb::arg("type"), nb::arg("learning_rate"), nb::arg("arguments"), nb::arg("options"))
      .def("minimize", &Minimize, nb::arg("builder"), nb::arg("loss"), nb::arg("parameters"), nb::arg("no_gradient"),
           inside);
}

}  // namespace regatta::binding
