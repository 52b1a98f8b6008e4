#include "program/layers/sequence.h"

#include "absl/strings/ascii.h"

namespace regatta::program::layers {

absl::StatusOr<Variable*> SequencePool(ProgramBuilder& builder, Variable* input, const std::string& type, bool is_test,
                                       double pad_value) {
  LayerCall layer(builder, "sequence_pool");
  ASSIGN_OR_RETURN(Variable * out, layer.Temporary(input->dtype));
  ASSIGN_OR_RETURN(Variable * index, layer.Temporary(DataType::kInt32));
  index->stop_gradient = true;
  RETURN_IF_ERROR(
      builder
          .Append("sequence_pool", {{"X", input}}, {{"Out", out}, {"MaxIndex", index}},
                  {{"pooltype", absl::AsciiStrToUpper(type)}, {"is_test", is_test}, {"pad_value", pad_value}})
          .status());
  return out;
}

absl::StatusOr<Variable*> SequenceConv(ProgramBuilder& builder, Variable* input, const SequenceConvOptions& options) {
  if (input->shape.size() != 2 || input->shape[1] < 1)
    return builder.Error(absl::StrCat("input is ", ShapeText(input->shape), "; want [-1, n]"));
  if (options.filter_size < 1 || options.num_filters < 1)
    return builder.Error("num_filters and filter_size must be 1 or more");
  LayerCall layer(builder, "sequence_conv", options.name);
  ASSIGN_OR_RETURN(
      Variable * filter,
      layer.Weight(options.weight, {options.filter_size * input->shape[1], options.num_filters}, input->dtype));
  ASSIGN_OR_RETURN(Variable * sums,
                   layer.Apply("sequence_conv", {{"X", input}, {"Filter", filter}},
                               {{"contextLength", options.filter_size},
                                {"contextStart", options.padding_start.value_or(-(options.filter_size / 2))},
                                {"contextStride", options.filter_stride}}));
  ASSIGN_OR_RETURN(Variable * biased, layer.AddBias(options.bias, sums, 1, sums->shape.size()));
  return layer.Activate(options.activation, biased);
}

absl::StatusOr<Variable*> SequenceConvPool(ProgramBuilder& builder, Variable* input, const SequenceConvOptions& options,
                                           const std::string& pool_type) {
  ASSIGN_OR_RETURN(Variable * conv, SequenceConv(builder, input, options));
  return SequencePool(builder, conv, pool_type);
}

absl::StatusOr<Lstm> DynamicLstm(ProgramBuilder& builder, Variable* input, const LstmOptions& options) {
  if (options.size < 4 || options.size % 4 != 0)
    return builder.Error(absl::StrCat("size is ", options.size, "; want four times the size of the cell"));
  LayerCall layer(builder, "lstm", options.name);
  const int64_t size = options.size / 4;
  ASSIGN_OR_RETURN(Variable * weight, layer.Weight(options.weight, {size, 4 * size}, input->dtype));
  ASSIGN_OR_RETURN(Variable * bias,
                   layer.Bias(options.bias, {1, (options.use_peepholes ? 7 : 4) * size}, input->dtype));
  Lstm made;
  Variable *gates = nullptr, *states = nullptr;
  for (Variable** out : {&made.hidden, &made.cell, &gates, &states}) {
    ASSIGN_OR_RETURN(*out, layer.Temporary(input->dtype));
  }
  RETURN_IF_ERROR(
      builder
          .Append("lstm",
                  {{"Input", input}, {"H0", options.h_0}, {"C0", options.c_0}, {"Weight", weight}, {"Bias", bias}},
                  {{"Hidden", made.hidden}, {"Cell", made.cell}, {"BatchGate", gates}, {"BatchCellPreAct", states}},
                  {{"use_peepholes", options.use_peepholes},
                   {"is_reverse", options.is_reverse},
                   {"gate_activation", options.gate_activation},
                   {"cell_activation", options.cell_activation},
                   {"candidate_activation", options.candidate_activation}})
          .status());
  return made;
}

absl::StatusOr<Variable*> DynamicGru(ProgramBuilder& builder, Variable* input, const GruOptions& options) {
  if (options.size < 1) return builder.Error(absl::StrCat("size is ", options.size, "; want 1 or more"));
  LayerCall layer(builder, "gru");
  ASSIGN_OR_RETURN(Variable * weight, layer.Weight(options.weight, {options.size, 3 * options.size}, input->dtype));
  Variable* bias = nullptr;
  if (options.bias.wanted) {
    ASSIGN_OR_RETURN(bias, layer.Bias(options.bias, {1, 3 * options.size}, input->dtype));
  }
  Variable *hidden = nullptr, *gates = nullptr, *reset = nullptr, *batch = nullptr;
  for (Variable** out : {&hidden, &gates, &reset, &batch}) {
    ASSIGN_OR_RETURN(*out, layer.Temporary(input->dtype));
  }
  RETURN_IF_ERROR(
      builder
          .Append("gru", {{"Input", input}, {"H0", options.h_0}, {"Weight", weight}, {"Bias", bias}},
                  {{"BatchGate", gates}, {"BatchResetHiddenPrev", reset}, {"BatchHidden", batch}, {"Hidden", hidden}},
                  {{"activation", options.candidate_activation},
                   {"gate_activation", options.gate_activation},
                   {"is_reverse", options.is_reverse},
                   {"origin_mode", options.origin_mode}})
          .status());
  return hidden;
}

}  // namespace regatta::program::layers
