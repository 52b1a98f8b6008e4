// Loops, branches, arrays of tensors, and the learning rate of a step.
#include <algorithm>

#include "program/schema/infer.h"
#include "program/schema/op_row.h"

namespace regatta::program {

namespace {

// The array remembers the shape of what is written into it last.
absl::Status InferWriteToArray(InferContext& context) {
  const Variable& x = context.In("X");
  context.SetKind("Out", VariableKind::kLodTensorArray);
  context.Set("Out", Shape(x.shape), x.dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferReadFromArray(InferContext& context) {
  const Variable& x = context.In("X");
  context.Set("Out", Shape(x.shape), x.dtype, x.lod_level);
  return absl::OkStatus();
}

absl::Status InferLength(InferContext& context) {
  context.Set("Out", {1}, DataType::kInt64);
  return absl::OkStatus();
}

absl::Status InferRankTable(InferContext& context) {
  context.SetKind("Out", VariableKind::kRaw);
  return absl::OkStatus();
}

absl::Status InferTensorToArray(InferContext& context) {
  context.SetKind("Out", VariableKind::kLodTensorArray);
  context.SetRowsOf("Out", "X", std::max(context.In("X").lod_level - 1, 0));
  return absl::OkStatus();
}

absl::Status InferArrayToTensor(InferContext& context) {
  context.SetRowsOf("Out", "X", context.In("X").lod_level + 1);
  return absl::OkStatus();
}

absl::Status InferShrink(InferContext& context) {
  context.SetRowsOf("Out", "X", context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferSplitByMask(InferContext& context) {
  for (const char* out : {"OutTrue", "OutFalse"}) context.SetRowsOf(out, "X", context.In("X").lod_level);
  return absl::OkStatus();
}

absl::Status InferMergeByMask(InferContext& context) {
  context.SetRowsOf("Out", "InTrue", context.In("InTrue").lod_level);
  return absl::OkStatus();
}

absl::Status InferSelectInput(InferContext& context) {
  context.SetLike("Out", "X");
  return absl::OkStatus();
}

absl::Status InferStackArray(InferContext& context) {
  const Variable& x = context.In("X");
  context.Set("Out", Shape(x.shape.size() + (context.attributes().Bool("use_stack") ? 1 : 0), kUnknownExtent), x.dtype);
  context.Set("OutIndex", {kUnknownExtent}, DataType::kInt32);
  return absl::OkStatus();
}

absl::Status InferPrint(InferContext& context) {
  context.SetLike("Out", "In");
  return absl::OkStatus();
}

absl::Status InferBeamSearch(InferContext& context) {
  context.Set("selected_ids", {kUnknownExtent, 1}, DataType::kInt64, 2);
  context.Set("selected_scores", {kUnknownExtent, 1}, DataType::kFloat32, 2);
  context.Set("parent_idx", {kUnknownExtent}, DataType::kInt32);
  return absl::OkStatus();
}

absl::Status InferBeamSearchDecode(InferContext& context) {
  context.Set("SentenceIds", {kUnknownExtent, 1}, DataType::kInt64, 2);
  context.Set("SentenceScores", {kUnknownExtent, 1}, DataType::kFloat32, 2);
  return absl::OkStatus();
}

absl::Status InferSchedule(InferContext& context) {
  const Attributes& attributes = context.attributes();
  if (attributes.String("kind") == "piecewise" &&
      attributes.Floats("values").size() != attributes.Floats("boundaries").size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", attributes.Floats("boundaries").size(),
                                                   " boundaries and ", attributes.Floats("values").size(),
                                                   " values; want one value more than boundaries"));
  }
  context.Set("Out", {1}, DataType::kFloat32);
  return absl::OkStatus();
}

constexpr char kBody[] = "sub_block:block is_scalar_condition:bool=false skip_eager_deletion_vars:strings=[]";

constexpr OpRow kControlRows[] = {
    {"while", "X*? Condition", "Out*? StepScopes?",
     "sub_block:block is_test:bool=false skip_eager_deletion_vars:strings=[]", AsDeclared},
    {"conditional_block", "Cond* Input*?", "Out*? Scope?", kBody, AsDeclared},
    {"recurrent", "inputs*? initial_states*? parameters*?", "outputs*? step_scopes?",
     "has_states:bool=false ex_states:strings states:strings sub_block:block reverse:bool=false is_train:bool=true "
     "skip_eager_deletion_vars:strings=[]",
     AsDeclared},
    {"write_to_array", "X I", "Out", "", InferWriteToArray},
    {"read_from_array", "X I X_W?", "Out", "", InferReadFromArray},
    {"lod_array_length", "X", "Out", "", InferLength},
    {"tensor_array_to_tensor", "X", "Out OutIndex?", "axis:int=0 use_stack:bool=false", InferStackArray},
    {"lod_rank_table", "X", "Out", "level:int=0", InferRankTable},
    {"max_sequence_len", "RankTable", "Out", "", InferLength},
    {"lod_tensor_to_array", "X RankTable", "Out", "", InferTensorToArray},
    {"array_to_lod_tensor", "X RankTable", "Out", "", InferArrayToTensor},
    {"shrink_rnn_memory", "X RankTable I", "Out", "", InferShrink},
    {"reorder_lod_tensor_by_rank", "X RankTable", "Out", "", OutLikeX},
    {"split_lod_tensor", "X Mask", "OutTrue OutFalse", "level:int=0", InferSplitByMask},
    {"merge_lod_tensor", "X Mask InTrue InFalse", "Out", "level:int=0", InferMergeByMask},
    {"select_input", "X* Mask", "Out", "", InferSelectInput},
    {"beam_search", "pre_ids pre_scores ids? scores", "selected_ids selected_scores parent_idx?",
     "level:int=0 beam_size:int end_id:int is_accumulated:bool=true", InferBeamSearch},
    {"beam_search_decode", "Ids Scores", "SentenceIds SentenceScores", "beam_size:int end_id:int",
     InferBeamSearchDecode},
    {"print", "In", "Out?",
     "first_n:int=-1 message:string= summarize:int=20 print_tensor_name:bool=true print_tensor_type:bool=true "
     "print_tensor_shape:bool=true print_tensor_layout:bool=true print_tensor_lod:bool=true "
     "print_phase:string=BOTH|FORWARD|BACKWARD is_forward:bool=true",
     InferPrint},
    {"py_func", "X*?", "Out*?", "forward_callable_id:int=0 backward_callable_id:int=-1 backward_skip_vars:strings=[]",
     AsDeclared},
    // One operator for each schedule of layers/learning_rate.h; Step counts from 0. linear_warmup takes the rate after
    // it from LearningRate, or from the attribute.
    {"lr_schedule", "Step LearningRate?", "Out",
     "kind:string=exponential|natural_exp|inverse_time|polynomial|piecewise|noam|cosine|linear_warmup "
     "learning_rate:float=0 decay_steps:float=1 decay_rate:float=0 staircase:bool=false end_learning_rate:float=0 "
     "power:float=1 cycle:bool=false boundaries:floats=[] values:floats=[] d_model:float=1 warmup_steps:float=1 "
     "step_each_epoch:float=1 epochs:float=1 start_lr:float=0 end_lr:float=0",
     InferSchedule},
};

}  // namespace

std::span<const OpRow> ControlRows() { return kControlRows; }

}  // namespace regatta::program
