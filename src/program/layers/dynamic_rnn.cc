#include "program/layers/dynamic_rnn.h"

namespace regatta::program::layers {

absl::Status DynamicRnn::WantBody(const char* call) const {
  if (body_) return absl::OkStatus();
  return builder_.Error(absl::StrCat("DynamicRNN.", call, " belongs into `with rnn.block():`"));
}

absl::Status DynamicRnn::WantStepInput(const char* call) const {
  RETURN_IF_ERROR(WantBody(call));
  if (rank_table_ != nullptr) return absl::OkStatus();
  return builder_.Error(absl::StrCat("DynamicRNN.", call, " needs a step_input before it"));
}

absl::Status DynamicRnn::Begin() {
  if (body_) return builder_.Error("DynamicRNN.block may be used once");
  ASSIGN_OR_RETURN(condition_, layer_.Temporary(DataType::kBool));
  condition_->shape = {1};
  condition_->stop_gradient = true;
  for (Variable** counter : {&step_, &zero_}) {
    ASSIGN_OR_RETURN(*counter, ApplyOperator(builder_, "fill_constant", {},
                                             {{"shape", Shape{1}}, {"dtype", CodeOf(DataType::kInt64)}}));
  }
  body_ = Body::Open(builder_);
  return absl::OkStatus();
}

absl::StatusOr<Variable*> DynamicRnn::NewArray(DataType dtype) {
  ASSIGN_OR_RETURN(Variable * array, layer_.Temporary(dtype));
  array->kind = VariableKind::kLodTensorArray;
  return array;
}

absl::StatusOr<Variable*> DynamicRnn::Read(Variable* array) {
  return ApplyOperator(builder_, "read_from_array", {{"X", array}, {"I", step_}});
}

absl::Status DynamicRnn::Write(Variable* value, Variable* array) {
  return builder_.Append("write_to_array", {{"X", value}, {"I", step_}}, {{"Out", array}}).status();
}

absl::StatusOr<Variable*> DynamicRnn::Shrink(Variable* value) {
  return ApplyOperator(builder_, "shrink_rnn_memory", {{"X", value}, {"RankTable", rank_table_}, {"I", step_}});
}

absl::Status DynamicRnn::MakeRankTable(Variable* x, int64_t level) {
  ASSIGN_OR_RETURN(rank_table_, builder_.CreateVariable("lod_rank_table", DataType::kFloat32));
  rank_table_->stop_gradient = true;
  RETURN_IF_ERROR(builder_.Append("lod_rank_table", {{"X", x}}, {{"Out", rank_table_}}, {{"level", level}}).status());
  ASSIGN_OR_RETURN(longest_, ApplyOperator(builder_, "max_sequence_len", {{"RankTable", rank_table_}}));
  longest_->stop_gradient = true;
  return builder_.Append("less_than", {{"X", step_}, {"Y", longest_}}, {{"Out", condition_}}).status();
}

absl::StatusOr<Variable*> DynamicRnn::StepInput(Variable* x, int64_t level) {
  RETURN_IF_ERROR(WantBody("step_input"));
  Variable* array = nullptr;
  {
    const BlockScope outside = Outside();
    if (rank_table_ == nullptr) RETURN_IF_ERROR(MakeRankTable(x, level));
    ASSIGN_OR_RETURN(array, NewArray(x->dtype));
    RETURN_IF_ERROR(
        builder_.Append("lod_tensor_to_array", {{"X", x}, {"RankTable", rank_table_}}, {{"Out", array}}).status());
  }
  if (first_array_ == nullptr) first_array_ = array;
  return Read(array);
}

absl::StatusOr<Variable*> DynamicRnn::StaticInput(Variable* x) {
  RETURN_IF_ERROR(WantStepInput("static_input"));
  Variable* sorted = nullptr;
  {
    const BlockScope outside = Outside();
    ASSIGN_OR_RETURN(sorted,
                     ApplyOperator(builder_, "reorder_lod_tensor_by_rank", {{"X", x}, {"RankTable", rank_table_}}));
  }
  return Shrink(sorted);
}

absl::StatusOr<Variable*> DynamicRnn::FilledMemory(const MemoryOptions& options) {
  ASSIGN_OR_RETURN(Variable * first, ApplyOperator(builder_, "read_from_array", {{"X", first_array_}, {"I", zero_}}));
  Shape shape = options.shape;
  shape.insert(shape.begin(), kUnknownExtent);
  return ApplyOperator(builder_, "fill_constant_batch_size_like", {{"Input", first}},
                       {{"shape", shape}, {"value", options.value}, {"dtype", CodeOf(options.dtype)}});
}

absl::StatusOr<Variable*> DynamicRnn::Memory(const MemoryOptions& options) {
  RETURN_IF_ERROR(WantStepInput("memory"));
  if (options.init == nullptr && options.shape.empty()) return builder_.Error("DynamicRNN.memory wants init or shape");
  Variable* array = nullptr;
  {
    const BlockScope outside = Outside();
    Variable* init = options.init;
    if (init == nullptr) {
      ASSIGN_OR_RETURN(init, FilledMemory(options));
    } else if (options.need_reorder) {
      ASSIGN_OR_RETURN(
          init, ApplyOperator(builder_, "reorder_lod_tensor_by_rank", {{"X", init}, {"RankTable", rank_table_}}));
    }
    ASSIGN_OR_RETURN(array, NewArray(init->dtype));
    RETURN_IF_ERROR(builder_.Append("write_to_array", {{"X", init}, {"I", zero_}}, {{"Out", array}}).status());
  }
  ASSIGN_OR_RETURN(Variable * before, Read(array));
  ASSIGN_OR_RETURN(Variable * memory, Shrink(before));
  memories_[memory] = array;
  return memory;
}

absl::Status DynamicRnn::UpdateMemory(Variable* memory, Variable* next) {
  RETURN_IF_ERROR(WantStepInput("update_memory"));
  const auto found = memories_.find(memory);
  if (found == memories_.end())
    return builder_.Error(
        absl::StrCat("DynamicRNN.update_memory: '", memory->name, "' is no memory; want one that memory() gave"));
  updates_.emplace_back(next, found->second);
  return absl::OkStatus();
}

absl::Status DynamicRnn::Output(const std::vector<Variable*>& outputs) {
  RETURN_IF_ERROR(WantStepInput("output"));
  for (Variable* each : outputs) {
    Variable* array = nullptr;
    {
      const BlockScope outside = Outside();
      ASSIGN_OR_RETURN(array, NewArray(each->dtype));
    }
    RETURN_IF_ERROR(Write(each, array));
    outputs_.push_back(array);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Variable*>> DynamicRnn::End() {
  RETURN_IF_ERROR(WantStepInput("block"));
  RETURN_IF_ERROR(builder_.Append("increment", {{"X", step_}}, {{"Out", step_}}).status());
  for (const auto& [next, array] : updates_) RETURN_IF_ERROR(Write(next, array));
  RETURN_IF_ERROR(builder_.Append("less_than", {{"X", step_}, {"Y", longest_}}, {{"Out", condition_}}).status());
  RETURN_IF_ERROR(CloseWhile(builder_, *body_, condition_));
  std::vector<Variable*> sequences;
  for (Variable* array : outputs_) {
    ASSIGN_OR_RETURN(Variable * sequence,
                     ApplyOperator(builder_, "array_to_lod_tensor", {{"X", array}, {"RankTable", rank_table_}}));
    sequences.push_back(sequence);
  }
  return sequences;
}

}  // namespace regatta::program::layers
