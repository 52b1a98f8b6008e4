#include "program/layers/dense.h"

#include <algorithm>

#include "base/printable.h"

namespace regatta::program::layers {

absl::StatusOr<Variable*> Data(ProgramBuilder& builder, const std::string& name, const DataOptions& options) {
  Variable variable;
  variable.name = name;
  variable.shape = options.shape;
  const bool unknown = std::ranges::any_of(options.shape, [](int64_t extent) { return extent < 0; });
  if (options.append_batch_size && !unknown) variable.shape.insert(variable.shape.begin(), kUnknownExtent);
  variable.dtype = options.dtype;
  variable.lod_level = options.lod_level;
  variable.stop_gradient = options.stop_gradient;
  variable.is_data = true;
  Block& block = builder.main().global_block();
  if (Variable* there = block.FindHere(name)) {
    if (there->is_data && TypeText(*there) == TypeText(variable) && there->lod_level == variable.lod_level)
      return there;
    return builder.Error(absl::StrCat("the variable '", base::Printable(name), "' is ", TypeText(*there),
                                      " already; give the new one another name"));
  }
  return block.AddVariable(std::move(variable));
}

namespace {

// The product of one input and its weights.
absl::StatusOr<Variable*> Product(LayerCall& layer, Variable* x, const FcOptions& options, int64_t rows,
                                  const ParameterAttributes& weight) {
  if (rows < 1 || rows >= static_cast<int64_t>(x->shape.size())) {
    return layer.builder().Error(absl::StrCat("input is ", ShapeText(x->shape), " and num_flatten_dims ", rows,
                                              "; want at least 1 and less than the number of its extents"));
  }
  const int64_t columns = AsMatrix(x->shape, rows).second;
  if (columns < 1) {
    return layer.builder().Error(
        absl::StrCat("input is ", ShapeText(x->shape), ": the extents from ", rows,
                     " on make the rows of its weights, so they must be known (layers.reshape)"));
  }
  ASSIGN_OR_RETURN(Variable * w, layer.Weight(weight, {columns, options.size}, x->dtype));
  return layer.Apply("mul", {{"X", x}, {"Y", w}}, {{"x_num_col_dims", rows}, {"y_num_col_dims", int64_t{1}}});
}

}  // namespace

absl::StatusOr<Variable*> Fc(ProgramBuilder& builder, const std::vector<Variable*>& inputs, const FcOptions& options) {
  if (inputs.empty()) return builder.Error("input is empty; give it one variable or several");
  if (options.size < 1) return builder.Error(absl::StrCat("size is ", options.size, "; want 1 or more"));
  if (options.weights.size() != 1 && options.weights.size() != inputs.size()) {
    return builder.Error(absl::StrCat("there are ", inputs.size(), " inputs and ", options.weights.size(),
                                      " param_attr; give one, or one for each input"));
  }
  LayerCall layer(builder, "fc", options.name);
  int64_t rows = options.num_flatten_dims;
  if (rows == -1) rows = static_cast<int64_t>(inputs[0]->shape.size()) - 1;
  std::vector<Variable*> products;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ParameterAttributes& weight = options.weights[options.weights.size() == 1 ? 0 : i];
    ASSIGN_OR_RETURN(Variable * product, Product(layer, inputs[i], options, rows, weight));
    products.push_back(product);
  }
  Variable* sum = products[0];
  if (products.size() > 1) {
    ASSIGN_OR_RETURN(sum, layer.Apply("sum", {{"X", products}}));
  }
  ASSIGN_OR_RETURN(Variable * biased, layer.AddBias(options.bias, sum, rows, sum->shape.size()));
  return layer.Activate(options.activation, biased);
}

absl::StatusOr<Variable*> Embedding(ProgramBuilder& builder, Variable* ids, const EmbeddingOptions& options) {
  if (options.size.size() != 2)
    return builder.Error(absl::StrCat("size is ", ShapeText(options.size), "; want [rows, dim]"));
  int64_t padding = options.padding_idx.value_or(-1);
  if (options.padding_idx && padding < 0) padding += options.size[0];
  if (options.padding_idx && (padding < 0 || padding >= options.size[0])) {
    return builder.Error(absl::StrCat("padding_idx is ", *options.padding_idx, "; want a row from ", -options.size[0],
                                      " to ", options.size[0] - 1));
  }
  LayerCall layer(builder, "embedding");
  ParameterAttributes attributes = options.weight;
  attributes.traits.is_distributed = attributes.traits.is_distributed || options.is_distributed;
  ASSIGN_OR_RETURN(Variable * w, layer.Weight(attributes, options.size, options.dtype));
  return layer.Apply(options.ids_shape == IdsShape::kWithOne ? "lookup_table" : "lookup_table_v2",
                     {{"W", w}, {"Ids", ids}},
                     {{"is_sparse", options.is_sparse},
                      {"is_distributed", options.is_distributed},
                      {"remote_prefetch", options.is_sparse && !options.is_distributed},
                      {"padding_idx", padding}});
}

absl::StatusOr<Variable*> SquareErrorCost(ProgramBuilder& builder, Variable* input, Variable* label) {
  LayerCall layer(builder, "square_error_cost");
  ASSIGN_OR_RETURN(Variable * difference, layer.Apply("elementwise_sub", {{"X", input}, {"Y", label}}));
  return layer.Apply("square", {{"X", difference}});
}

absl::StatusOr<Variable*> Mean(ProgramBuilder& builder, Variable* x) {
  return ApplyOperator(builder, "mean", {{"X", x}});
}

}  // namespace regatta::program::layers
