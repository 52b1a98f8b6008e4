// Operators on sequences: tensors whose rows are cut by levels of offsets. A variable that is declared without levels
// may still be fed with some, so a missing level is no error here.
#include <algorithm>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// A row for each sequence of the last level.
absl::Status InferSequencePool(InferContext& context) {
  const Variable& x = context.In("X");
  const int levels = std::max(x.lod_level - 1, 0);
  context.SetRowsOf("Out", "X", levels);
  context.Set("MaxIndex", Shape(x.shape), DataType::kInt32, levels);
  return absl::OkStatus();
}

absl::Status InferSequenceConv(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("X", 2));
  RETURN_IF_ERROR(context.WantRank("Filter", 2));
  const Variable& x = context.In("X");
  const Shape& filter = context.ShapeOf("Filter");
  if (x.shape.empty() || filter.empty()) return absl::OkStatus();
  if (context.attributes().Int("contextStride") != 1)
    return absl::InvalidArgumentError("filter_stride must be 1, as in Fluid");
  const int64_t length = context.attributes().Int("contextLength");
  if (x.shape[1] > 0 && !MayEqual(filter[0], Times(length, x.shape[1]))) {
    return context.Refuse({"X", "Filter"}, absl::StrCat("want a filter of ", Times(length, x.shape[1]),
                                                        " rows: ", length, " steps of X"));
  }
  context.Set("Out", {x.shape[0], filter[1]}, x.dtype, x.lod_level);
  return absl::OkStatus();
}

// X with another number of steps.
absl::Status InferSequenceRows(InferContext& context) {
  context.SetRowsOf("Out", "X", context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferSequenceExpandAs(InferContext& context) {
  context.SetRowsOf("Out", "X", context.In("Y").lod_level);
  return absl::OkStatus();
}

absl::Status InferSequenceReshape(InferContext& context) {
  const int64_t columns = context.attributes().Int("new_dim");
  if (columns < 1) return absl::InvalidArgumentError(absl::StrCat("new_dim is ", columns, "; want 1 or more"));
  context.Set("Out", {kUnknownExtent, columns}, context.In("X").dtype, std::max(context.In("X").lod_level, 1));
  return absl::OkStatus();
}

absl::Status InferSequencePad(InferContext& context) {
  const Variable& x = context.In("X");
  if (x.shape.empty()) return absl::OkStatus();
  Shape out = x.shape;
  const int64_t length = context.attributes().Int("padded_length");
  out.insert(out.begin() + 1, length < 0 ? kUnknownExtent : length);
  out[0] = kUnknownExtent;
  context.Set("Out", out, x.dtype);
  context.Set("Length", {kUnknownExtent}, DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferSequenceUnpad(InferContext& context) {
  RETURN_IF_ERROR(context.WantRankAtLeast("X", 2));
  Shape out = context.ShapeOf("X");
  if (out.empty()) return absl::OkStatus();
  out.erase(out.begin());
  out[0] = kUnknownExtent;
  context.Set("Out", out, context.In("X").dtype, 1);
  return absl::OkStatus();
}

absl::Status InferSequenceEnumerate(InferContext& context) {
  const int64_t size = context.attributes().Int("win_size");
  if (size < 2) return absl::InvalidArgumentError(absl::StrCat("win_size is ", size, "; want 2 or more"));
  const Variable& x = context.In("X");
  if (!x.shape.empty()) context.Set("Out", {x.shape[0], size}, x.dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferSequenceMask(InferContext& context) {
  ASSIGN_OR_RETURN(const DataType dtype, TypeIn(context, "out_dtype"));
  Shape out = context.ShapeOf("X");
  const int64_t length = context.attributes().Int("maxlen");
  out.push_back(length > 0 && !context.Has("MaxLenTensor") ? length : kUnknownExtent);
  context.Set("Y", out, dtype);
  return absl::OkStatus();
}

absl::Status InferSequenceReverse(InferContext& context) {
  context.SetLike("Y", "X");
  return absl::OkStatus();
}

// Y's levels, or those of target_lod.
absl::Status InferLodReset(InferContext& context) {
  const Variable& x = context.In("X");
  const int levels = context.Has("Y") ? std::max(context.In("Y").lod_level, 1) : 1;
  context.Set("Out", Shape(x.shape), x.dtype, context.attributes().Bool("append") ? x.lod_level + levels : levels);
  return absl::OkStatus();
}

// Input holds the products for the gates: [steps, 4 · size].
absl::Status InferLstm(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("Input", 2));
  RETURN_IF_ERROR(context.WantRank("Weight", 2));
  const Variable& input = context.In("Input");
  const Shape& weight = context.ShapeOf("Weight");
  if (input.shape.empty() || weight.empty()) return absl::OkStatus();
  if (!MayEqual(input.shape[1], Times(4, weight[0])))
    return context.Refuse({"Input", "Weight"},
                          "Input must have 4 columns for each of the cell: fc(size=4 * n) before "
                          "dynamic_lstm(size=4 * n)");
  const Shape out = {input.shape[0], weight[0]};
  for (const char* slot : {"Hidden", "Cell", "BatchCellPreAct"}) context.Set(slot, out, input.dtype, input.lod_level);
  context.Set("BatchGate", Shape(input.shape), input.dtype, input.lod_level);
  return absl::OkStatus();
}

absl::Status InferLstmp(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("Input", 2));
  RETURN_IF_ERROR(context.WantRank("ProjWeight", 2));
  const Variable& input = context.In("Input");
  const Shape& projection = context.ShapeOf("ProjWeight");
  if (input.shape.empty() || projection.empty()) return absl::OkStatus();
  context.Set("Projection", {input.shape[0], projection[1]}, input.dtype, input.lod_level);
  for (const char* slot : {"Cell", "BatchCellPreAct", "BatchHidden"})
    context.Set(slot, {input.shape[0], projection[0]}, input.dtype, input.lod_level);
  context.Set("BatchGate", Shape(input.shape), input.dtype, input.lod_level);
  return absl::OkStatus();
}

// Input holds the products for the gates: [steps, 3 · size].
absl::Status InferGru(InferContext& context) {
  RETURN_IF_ERROR(context.WantRank("Input", 2));
  RETURN_IF_ERROR(context.WantRank("Weight", 2));
  const Variable& input = context.In("Input");
  const Shape& weight = context.ShapeOf("Weight");
  if (input.shape.empty() || weight.empty()) return absl::OkStatus();
  if (!MayEqual(input.shape[1], Times(3, weight[0])))
    return context.Refuse({"Input", "Weight"},
                          "Input must have 3 columns for each of the cell: fc(size=3 * n) before "
                          "dynamic_gru(size=n)");
  const Shape out = {input.shape[0], weight[0]};
  for (const char* slot : {"Hidden", "BatchResetHiddenPrev", "BatchHidden"})
    context.Set(slot, out, input.dtype, input.lod_level);
  context.Set("BatchGate", Shape(input.shape), input.dtype, input.lod_level);
  return absl::OkStatus();
}

absl::Status InferGruUnit(InferContext& context) {
  const Variable &input = context.In("Input"), &hidden = context.In("HiddenPrev");
  context.Set("Gate", Shape(input.shape), input.dtype);
  context.Set("ResetHiddenPrev", Shape(hidden.shape), input.dtype);
  context.Set("Hidden", Shape(hidden.shape), input.dtype);
  return absl::OkStatus();
}

absl::Status InferLstmUnit(InferContext& context) {
  const Variable& cell = context.In("C_prev");
  context.Set("C", Shape(cell.shape), cell.dtype);
  context.Set("H", Shape(cell.shape), cell.dtype);
  return absl::OkStatus();
}

absl::Status InferLinearChainCrf(InferContext& context) {
  const Variable& emission = context.In("Emission");
  RETURN_IF_ERROR(WantIntegers(context, "Label"));
  context.Set("LogLikelihood", {kUnknownExtent, 1}, emission.dtype);
  context.Set("Alpha", Shape(emission.shape), emission.dtype, emission.lod_level);
  context.Set("EmissionExps", Shape(emission.shape), emission.dtype, emission.lod_level);
  context.Set("TransitionExps", Shape(context.ShapeOf("Transition")), emission.dtype);
  return absl::OkStatus();
}

absl::Status InferCrfDecoding(InferContext& context) {
  const Variable& emission = context.In("Emission");
  if (!emission.shape.empty()) context.Set("ViterbiPath", {emission.shape[0], 1}, DataType::kInt64, emission.lod_level);
  return absl::OkStatus();
}

constexpr OpRow kSequenceRows[] = {
    {"sequence_pool", "X", "Out MaxIndex?",
     "is_test:bool=false pooltype:string=AVERAGE|SUM|SQRT|MAX|LAST|FIRST pad_value:float=0", InferSequencePool},
    {"sequence_conv", "X PaddingData? Filter", "Out",
     "paddingTrainable:bool=false contextLength:int contextStart:int=0 contextStride:int=1", InferSequenceConv},
    {"sequence_softmax", "X", "Out", "data_format:string=AnyLayout", OutLikeX},
    {"sequence_expand", "X Y", "Out", "ref_level:int=-1", InferSequenceRows},
    {"sequence_expand_as", "X Y", "Out", "", InferSequenceExpandAs},
    {"sequence_reshape", "X", "Out", "new_dim:int", InferSequenceReshape},
    {"sequence_concat", "X*", "Out", "", InferSequenceRows},
    {"sequence_slice", "X Offset Length", "Out", "", InferSequenceRows},
    {"sequence_pad", "X PadValue", "Out Length", "padded_length:int=-1", InferSequencePad},
    {"sequence_unpad", "X Length", "Out", "", InferSequenceUnpad},
    {"sequence_enumerate", "X", "Out", "win_size:int pad_value:int=0", InferSequenceEnumerate},
    {"sequence_erase", "X", "Out", "tokens:ints", InferSequenceRows},
    {"sequence_mask", "X MaxLenTensor?", "Y", "maxlen:int=-1 out_dtype:int=3", InferSequenceMask},
    {"sequence_reverse", "X", "Y", "", InferSequenceReverse},
    {"sequence_scatter", "X Ids Updates", "Out", "", OutLikeX},
    {"lod_reset", "X Y?", "Out", "target_lod:ints=[] append:bool=false", InferLodReset},
    {"lstm", "Input H0? C0? Weight Bias", "Hidden Cell BatchGate? BatchCellPreAct?",
     "use_peepholes:bool=true is_reverse:bool=false gate_activation:string=sigmoid cell_activation:string=tanh "
     "candidate_activation:string=tanh",
     InferLstm},
    {"lstmp", "Input H0? C0? Weight ProjWeight Bias", "Projection Cell BatchGate? BatchCellPreAct? BatchHidden?",
     "use_peepholes:bool=true is_reverse:bool=false cell_clip:float=0 proj_clip:float=0 gate_activation:string=sigmoid "
     "cell_activation:string=tanh candidate_activation:string=tanh proj_activation:string=tanh",
     InferLstmp},
    {"gru", "Input H0? Weight Bias?", "BatchGate? BatchResetHiddenPrev? BatchHidden? Hidden",
     "activation:string=tanh gate_activation:string=sigmoid is_reverse:bool=false origin_mode:bool=false", InferGru},
    {"gru_unit", "Input HiddenPrev Weight Bias?", "Gate? ResetHiddenPrev? Hidden",
     "activation:int=2 gate_activation:int=1 origin_mode:bool=false", InferGruUnit},
    {"lstm_unit", "X C_prev", "C H", "forget_bias:float=0", InferLstmUnit},
    {"linear_chain_crf", "Emission Transition Label Length?", "Alpha? EmissionExps? TransitionExps? LogLikelihood", "",
     InferLinearChainCrf},
    {"crf_decoding", "Emission Transition Label? Length?", "ViterbiPath", "", InferCrfDecoding},
};

}  // namespace

std::span<const OpRow> SequenceRows() { return kSequenceRows; }

}  // namespace regatta::program
