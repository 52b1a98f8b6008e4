#include "program/message_writer.h"

namespace regatta::program {

namespace {

void WriteParameter(const ParameterTraits& traits, ParameterMessage& message) {
  message.set_trainable(traits.trainable);
  message.set_learning_rate(traits.learning_rate);
  message.set_is_distributed(traits.is_distributed);
  if (traits.regularizer) {
    message.mutable_regularizer()->set_kind(static_cast<uint32_t>(traits.regularizer->kind));
    message.mutable_regularizer()->set_coefficient(traits.regularizer->coefficient);
  }
  if (!traits.gradient_clip) return;
  ClipMessage& clip = *message.mutable_gradient_clip();
  clip.set_kind(static_cast<uint32_t>(traits.gradient_clip->kind));
  clip.set_low(traits.gradient_clip->low);
  clip.set_high(traits.gradient_clip->high);
  clip.set_limit(traits.gradient_clip->limit);
  clip.set_group(traits.gradient_clip->group);
}

void WriteVariable(const Variable& variable, VariableMessage& message) {
  message.set_name(variable.name);
  message.set_kind(static_cast<uint32_t>(variable.kind));
  message.mutable_shape()->Add(variable.shape.begin(), variable.shape.end());
  message.set_dtype(static_cast<uint32_t>(variable.dtype));
  message.set_lod_level(static_cast<uint32_t>(variable.lod_level));
  message.set_persistable(variable.persistable);
  message.set_stop_gradient(variable.stop_gradient);
  message.set_is_data(variable.is_data);
  if (variable.parameter) WriteParameter(*variable.parameter, *message.mutable_parameter());
}

struct AttributeWriter {
  AttributeMessage& message;

  void operator()(bool value) const { message.set_bool_value(value); }
  void operator()(int64_t value) const { message.set_int_value(value); }
  void operator()(double value) const { message.set_float_value(value); }
  void operator()(const std::string& value) const { message.set_string_value(value); }
  void operator()(BlockIndex value) const { message.set_block(static_cast<uint32_t>(value.value)); }
  void operator()(const std::vector<bool>& values) const {
    auto& list = *message.mutable_bools()->mutable_values();
    for (const bool value : values) list.Add(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    message.mutable_ints()->mutable_values()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<double>& values) const {
    message.mutable_floats()->mutable_values()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<std::string>& values) const {
    message.mutable_strings()->mutable_values()->Add(values.begin(), values.end());
  }
  void operator()(const std::vector<BlockIndex>& values) const {
    auto& list = *message.mutable_blocks()->mutable_values();
    for (const BlockIndex value : values) list.Add(static_cast<uint32_t>(value.value));
  }
};

void WriteSlots(const Slots& slots, google::protobuf::RepeatedPtrField<SlotMessage>& messages) {
  for (const Slot& slot : slots) {
    SlotMessage& message = *messages.Add();
    message.set_name(slot.name);
    message.mutable_variables()->Add(slot.variables.begin(), slot.variables.end());
  }
}

void WriteOperation(const Operation& operation, OperationMessage& message) {
  message.set_type(operation.type);
  WriteSlots(operation.inputs, *message.mutable_inputs());
  WriteSlots(operation.outputs, *message.mutable_outputs());
  for (const auto& [name, value] : operation.attributes) {
    AttributeMessage& attribute = *message.add_attributes();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
  message.set_role(static_cast<uint32_t>(operation.role));
  message.mutable_role_variables()->Add(operation.role_variables.begin(), operation.role_variables.end());
  message.set_layer(operation.site.layer);
  message.set_file(operation.site.file);
  message.set_line(static_cast<uint32_t>(operation.site.line));
}

}  // namespace

ProgramMessage MessageOf(const Program& program) {
  ProgramMessage message;
  message.set_random_seed(program.random_seed());
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Block& block = program.block(i);
    BlockMessage& made = *message.add_blocks();
    if (block.parent() != nullptr) made.set_parent(static_cast<uint32_t>(block.parent()->index()));
    for (const auto& variable : block.variables()) WriteVariable(*variable, *made.add_variables());
    for (const auto& operation : block.operations()) WriteOperation(*operation, *made.add_operations());
  }
  return message;
}

}  // namespace regatta::program
