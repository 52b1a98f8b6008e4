#include "program/layers/normalization.h"

namespace regatta::program::layers {

namespace {

// Statistics of a training: a parameter that no optimizer changes.
absl::StatusOr<Variable*> Moving(LayerCall& layer, const std::string& name, const Shape& shape, DataType dtype,
                                 double first) {
  ParameterAttributes attributes;
  attributes.name = name;
  attributes.traits.trainable = false;
  return layer.Weight(attributes, shape, dtype, Initializer::Constant(first));
}

}  // namespace

absl::StatusOr<Variable*> BatchNorm(ProgramBuilder& builder, Variable* input, const BatchNormOptions& options) {
  const size_t rank = input->shape.size();
  if (rank < 2) return builder.Error(absl::StrCat("input is ", ShapeText(input->shape), "; want 2 extents or more"));
  LayerCall layer(builder, "batch_norm", options.name);
  const Shape channels = {input->shape[options.data_layout == "NHWC" ? rank - 1 : 1]};
  const DataType dtype = input->dtype == DataType::kFloat16 ? DataType::kFloat32 : input->dtype;
  ASSIGN_OR_RETURN(Variable * scale, layer.Weight(options.scale, channels, dtype, Initializer::Constant(1)));
  ASSIGN_OR_RETURN(Variable * bias, layer.Bias(options.bias, channels, dtype));
  ASSIGN_OR_RETURN(Variable * mean, Moving(layer, options.moving_mean_name, channels, dtype, 0));
  ASSIGN_OR_RETURN(Variable * variance, Moving(layer, options.moving_variance_name, channels, dtype, 1));
  Variable *saved_mean = nullptr, *saved_variance = nullptr, *out = nullptr;
  for (Variable** made : {&saved_mean, &saved_variance, &out}) {
    ASSIGN_OR_RETURN(*made, layer.Temporary(dtype));
  }
  saved_mean->stop_gradient = saved_variance->stop_gradient = true;
  RETURN_IF_ERROR(builder
                      .Append("batch_norm",
                              {{"X", input}, {"Scale", scale}, {"Bias", bias}, {"Mean", mean}, {"Variance", variance}},
                              {{"Y", out},
                               {"MeanOut", mean},
                               {"VarianceOut", variance},
                               {"SavedMean", saved_mean},
                               {"SavedVariance", saved_variance}},
                              {{"is_test", options.is_test},
                               {"use_global_stats", options.use_global_stats},
                               {"momentum", options.momentum},
                               {"epsilon", options.epsilon},
                               {"data_layout", options.data_layout}})
                      .status());
  return layer.Activate(options.activation, out);
}

absl::StatusOr<Variable*> LayerNorm(ProgramBuilder& builder, Variable* input, const LayerNormOptions& options) {
  const auto rank = static_cast<int64_t>(input->shape.size());
  if (options.begin_norm_axis < 1 || options.begin_norm_axis >= rank) {
    return builder.Error(absl::StrCat("input is ", ShapeText(input->shape), " and begin_norm_axis ",
                                      options.begin_norm_axis, "; want 1 to ", rank - 1));
  }
  LayerCall layer(builder, "layer_norm", options.name);
  const Shape normed = {AsMatrix(input->shape, options.begin_norm_axis).second};
  Variable *scale = nullptr, *bias = nullptr, *mean = nullptr, *variance = nullptr, *out = nullptr;
  if (options.scale.wanted) {
    ASSIGN_OR_RETURN(scale, layer.Weight(options.scale, normed, input->dtype, Initializer::Constant(1)));
  }
  if (options.bias.wanted) {
    ASSIGN_OR_RETURN(bias, layer.Bias(options.bias, normed, input->dtype));
  }
  for (Variable** made : {&mean, &variance, &out}) {
    ASSIGN_OR_RETURN(*made, layer.Temporary(input->dtype));
  }
  mean->stop_gradient = variance->stop_gradient = true;
  RETURN_IF_ERROR(builder
                      .Append("layer_norm", {{"X", input}, {"Scale", scale}, {"Bias", bias}},
                              {{"Y", out}, {"Mean", mean}, {"Variance", variance}},
                              {{"epsilon", options.epsilon}, {"begin_norm_axis", options.begin_norm_axis}})
                      .status());
  return layer.Activate(options.activation, out);
}

absl::StatusOr<Variable*> DataNorm(ProgramBuilder& builder, Variable* input, const DataNormOptions& options) {
  if (input->shape.size() < 2)
    return builder.Error(absl::StrCat("input is ", ShapeText(input->shape), "; want [-1, n]"));
  LayerCall layer(builder, "data_norm", options.name);
  const std::string prefix = options.name.empty() ? "dn" : options.name;
  const Shape channels = {input->shape[1]};
  const auto sum = [&](const char* suffix, double first) {
    ParameterAttributes attributes;
    attributes.name = prefix + suffix;
    return builder.CreateParameter(attributes, "", channels, input->dtype, Initializer::Constant(first));
  };
  ASSIGN_OR_RETURN(Variable * size, sum(".batch_size", options.batch_size));
  ASSIGN_OR_RETURN(Variable * total, sum(".batch_sum", options.batch_sum));
  ASSIGN_OR_RETURN(Variable * squares, sum(".batch_square_sum", options.batch_square_sum));
  Variable *means = nullptr, *scales = nullptr, *out = nullptr;
  for (Variable** made : {&means, &scales, &out}) {
    ASSIGN_OR_RETURN(*made, builder.CreateVariable("_generated_var", input->dtype));
  }
  means->stop_gradient = scales->stop_gradient = true;
  RETURN_IF_ERROR(builder
                      .Append("data_norm",
                              {{"X", input}, {"BatchSize", size}, {"BatchSum", total}, {"BatchSquareSum", squares}},
                              {{"Y", out}, {"Means", means}, {"Scales", scales}}, {{"epsilon", options.epsilon}})
                      .status());
  return layer.Activate(options.activation, out);
}

absl::StatusOr<Variable*> Dropout(ProgramBuilder& builder, Variable* x, const DropoutOptions& options) {
  LayerCall layer(builder, "dropout", options.name);
  ASSIGN_OR_RETURN(Variable * out, layer.Temporary(x->dtype));
  ASSIGN_OR_RETURN(Variable * mask, layer.Temporary(DataType::kUInt8));
  mask->stop_gradient = true;
  const int64_t program_seed = builder.main().random_seed();
  const bool own = options.seed.value_or(0) != 0;
  RETURN_IF_ERROR(builder
                      .Append("dropout", {{"X", x}}, {{"Out", out}, {"Mask", mask}},
                              {{"dropout_prob", options.probability},
                               {"is_test", options.is_test},
                               {"fix_seed", options.seed.has_value() || program_seed != 0},
                               {"seed", own ? *options.seed : program_seed},
                               {"dropout_implementation", options.implementation}})
                      .status());
  return out;
}

}  // namespace regatta::program::layers
