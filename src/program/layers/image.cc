#include "program/layers/image.h"

#include <cmath>

namespace regatta::program::layers {

namespace {

// One number stands for two.
Pair Both(const Pair& given) { return given.size() == 1 ? Pair{given[0], given[0]} : given; }

}  // namespace

absl::StatusOr<Variable*> Conv2d(ProgramBuilder& builder, Variable* input, const Conv2dOptions& options) {
  const bool last = options.data_format == "NHWC";
  if (input->shape.size() != 4 || input->shape[last ? 3 : 1] < 1) {
    return builder.Error(absl::StrCat("input is ", ShapeText(input->shape), "; want ",
                                      last ? "[-1, height, width, channels]" : "[-1, channels, height, width]"));
  }
  const int64_t channels = input->shape[last ? 3 : 1];
  if (options.groups < 1 || channels % options.groups != 0)
    return builder.Error(absl::StrCat("groups is ", options.groups, "; want a divisor of the ", channels, " channels"));
  const Pair filter_size = Both(options.filter_size);
  if (filter_size.size() != 2) return builder.Error("filter_size wants one number or two");
  LayerCall layer(builder, "conv2d", options.name);
  const auto fan = static_cast<double>(filter_size[0] * filter_size[1] * channels);
  ASSIGN_OR_RETURN(
      Variable * filter,
      layer.Weight(options.weight, {options.num_filters, channels / options.groups, filter_size[0], filter_size[1]},
                   input->dtype, Initializer::Normal(0, std::sqrt(2.0 / fan))));
  ASSIGN_OR_RETURN(Variable * sums, layer.Apply("conv2d", {{"Input", input}, {"Filter", filter}},
                                                {{"strides", Both(options.stride)},
                                                 {"paddings", Both(options.padding)},
                                                 {"dilations", Both(options.dilation)},
                                                 {"groups", options.groups},
                                                 {"padding_algorithm", options.padding_algorithm},
                                                 {"data_format", options.data_format}},
                                                "Output"));
  const size_t axis = last ? 3 : 1;
  ASSIGN_OR_RETURN(Variable * biased, layer.AddBias(options.bias, sums, axis, axis + 1));
  return layer.Activate(options.activation, biased);
}

absl::StatusOr<Variable*> Pool2d(ProgramBuilder& builder, Variable* input, const Pool2dOptions& options) {
  if (options.type != "max" && options.type != "avg") return builder.Error("pool_type must be max or avg");
  const Pair size = Both(options.size);
  if (!options.global_pooling && (size.size() != 2 || size[0] < 1 || size[1] < 1))
    return builder.Error("pool_size is missing; give it, or global_pooling=True");
  return LayerCall(builder, "pool2d", options.name)
      .Apply("pool2d", {{"X", input}},
             {{"pooling_type", options.type},
              {"ksize", size},
              {"strides", Both(options.stride)},
              {"paddings", Both(options.padding)},
              {"global_pooling", options.global_pooling},
              {"ceil_mode", options.ceil_mode},
              {"exclusive", options.exclusive},
              {"padding_algorithm", options.padding_algorithm},
              {"data_format", options.data_format}});
}

}  // namespace regatta::program::layers
