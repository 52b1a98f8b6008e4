#include "program/message_reader.h"

#include "base/printable.h"
#include "program/append.h"

namespace regatta::program {

namespace {

constexpr int kMostBlocks = 4096;
constexpr int kMostExtents = 16;
constexpr uint32_t kMostLevels = 16;

absl::Status Refuse(std::string_view field, double value) {
  return absl::InvalidArgumentError(
      absl::StrCat(base::View(field), " is ", value, ", which this version does not know"));
}

// The enum value of an index, if the table has it.
template <typename Value, size_t kCount>
absl::StatusOr<Value> EnumOf(const base::Named<Value> (&table)[kCount], uint32_t index, std::string_view field) {
  if (index < kCount) return table[index].value;
  return Refuse(field, index);
}

absl::StatusOr<ParameterTraits> ReadParameter(const ParameterMessage& message) {
  ParameterTraits traits;
  traits.trainable = message.trainable();
  traits.learning_rate = message.learning_rate();
  traits.is_distributed = message.is_distributed();
  if (message.has_regularizer()) {
    if (message.regularizer().kind() > 1) return Refuse("regularizer", message.regularizer().kind());
    traits.regularizer =
        Regularizer{static_cast<Regularizer::Kind>(message.regularizer().kind()), message.regularizer().coefficient()};
  }
  if (!message.has_gradient_clip()) return traits;
  const ClipMessage& clip = message.gradient_clip();
  if (clip.kind() > 2) return Refuse("gradient_clip", clip.kind());
  traits.gradient_clip =
      GradientClip{static_cast<GradientClip::Kind>(clip.kind()), clip.low(), clip.high(), clip.limit(), clip.group()};
  return traits;
}

absl::StatusOr<Variable> ReadVariable(const VariableMessage& message) {
  Variable variable;
  variable.name = message.name();
  ASSIGN_OR_RETURN(variable.kind, EnumOf(kVariableKinds, message.kind(), "kind"));
  if (message.shape_size() > kMostExtents) return Refuse("the number of extents", message.shape_size());
  variable.shape.assign(message.shape().begin(), message.shape().end());
  for (const int64_t extent : variable.shape)
    if (extent < kUnknownExtent || extent > kMostExtent) return Refuse("an extent", static_cast<double>(extent));
  const std::optional<DataType> dtype = DataTypeOfCode(message.dtype());
  if (!dtype) return Refuse("dtype", message.dtype());
  variable.dtype = *dtype;
  if (message.lod_level() > kMostLevels) return Refuse("lod_level", message.lod_level());
  variable.lod_level = static_cast<int>(message.lod_level());
  variable.persistable = message.persistable();
  variable.stop_gradient = message.stop_gradient();
  variable.is_data = message.is_data();
  if (message.has_parameter()) {
    ASSIGN_OR_RETURN(variable.parameter, ReadParameter(message.parameter()));
  }
  return variable;
}

absl::StatusOr<BlockIndex> ReadBlockIndex(uint32_t index, size_t blocks) {
  if (index < blocks) return BlockIndex{index};
  return absl::InvalidArgumentError(absl::StrCat("it names block ", index, ", and there are ", blocks));
}

absl::StatusOr<Attribute> ReadAttributeMessage(const AttributeMessage& message, size_t blocks) {
  switch (message.value_case()) {
    case AttributeMessage::kBoolValue:
      return message.bool_value();
    case AttributeMessage::kIntValue:
      return int64_t{message.int_value()};
    case AttributeMessage::kFloatValue:
      return message.float_value();
    case AttributeMessage::kStringValue:
      return message.string_value();
    case AttributeMessage::kBools:
      return std::vector<bool>(message.bools().values().begin(), message.bools().values().end());
    case AttributeMessage::kInts:
      return std::vector<int64_t>(message.ints().values().begin(), message.ints().values().end());
    case AttributeMessage::kFloats:
      return std::vector<double>(message.floats().values().begin(), message.floats().values().end());
    case AttributeMessage::kStrings:
      return Names(message.strings().values().begin(), message.strings().values().end());
    case AttributeMessage::kBlock: {
      ASSIGN_OR_RETURN(const BlockIndex block, ReadBlockIndex(message.block(), blocks));
      return block;
    }
    case AttributeMessage::kBlocks: {
      std::vector<BlockIndex> list;
      for (const uint32_t index : message.blocks().values()) {
        ASSIGN_OR_RETURN(const BlockIndex block, ReadBlockIndex(index, blocks));
        list.push_back(block);
      }
      return list;
    }
    case AttributeMessage::VALUE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("it has no value that this version knows");
}

Slots ReadSlotMessages(const google::protobuf::RepeatedPtrField<SlotMessage>& messages) {
  Slots slots;
  for (const SlotMessage& message : messages)
    slots.push_back({message.name(), Names(message.variables().begin(), message.variables().end())});
  return slots;
}

absl::StatusOr<Operation> ReadOperation(const OperationMessage& message, const Block& block, size_t blocks) {
  Operation operation;
  operation.type = message.type();
  operation.inputs = ReadSlotMessages(message.inputs());
  operation.outputs = ReadSlotMessages(message.outputs());
  ASSIGN_OR_RETURN(operation.role, EnumOf(kRoles, message.role(), "role"));
  operation.role_variables.assign(message.role_variables().begin(), message.role_variables().end());
  operation.site = {message.layer(), message.file(), static_cast<int>(message.line() & 0x7FFFFFFF)};
  for (const AttributeMessage& attribute : message.attributes()) {
    absl::StatusOr<Attribute> value = ReadAttributeMessage(attribute, blocks);
    if (!value.ok()) {
      return base::Annotate(value.status(),
                            absl::StrCat(operation.Place(), ": attribute '", base::Printable(attribute.name()), "'"));
    }
    operation.attributes.Set(attribute.name(), *std::move(value));
  }
  RETURN_IF_ERROR(CheckOperation(block, operation));
  return operation;
}

absl::Status ReadVariables(const BlockMessage& message, Block& block) {
  for (int i = 0; i < message.variables_size(); ++i) {
    const VariableMessage& each = message.variables(i);
    absl::StatusOr<Variable> variable = ReadVariable(each);
    if (!variable.ok()) {
      return base::Annotate(variable.status(),
                            absl::StrCat("block ", block.index(), ": variable '", base::Printable(each.name()), "'"));
    }
    RETURN_IF_ERROR(base::Annotate(block.AddVariable(*std::move(variable)).status(), absl::StrCat("variable ", i)));
  }
  return absl::OkStatus();
}

absl::Status ReadOperations(const BlockMessage& message, Block& block, size_t blocks) {
  for (int i = 0; i < message.operations_size(); ++i) {
    absl::StatusOr<Operation> operation = ReadOperation(message.operations(i), block, blocks);
    if (!operation.ok())
      return base::Annotate(operation.status(), absl::StrCat("block ", block.index(), ": operation ", i));
    block.AddOperation(*std::move(operation));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> ProgramOf(const ProgramMessage& message) {
  if (message.blocks_size() < 1 || message.blocks_size() > kMostBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", message.blocks_size(), " blocks; want 1 to ", kMostBlocks));
  }
  auto program = std::make_unique<Program>();
  program->set_random_seed(message.random_seed());
  for (int i = 0; i < message.blocks_size(); ++i) {
    const uint32_t parent = message.blocks(i).parent();
    if (i == 0 ? parent != 0 : parent >= static_cast<uint32_t>(i))
      return absl::InvalidArgumentError(
          absl::StrCat("block ", i, ": its parent is ", parent, "; want a block before it"));
    if (i > 0) program->AddBlock(program->block(parent));
    RETURN_IF_ERROR(ReadVariables(message.blocks(i), program->block(i)));
  }
  for (int i = 0; i < message.blocks_size(); ++i)
    RETURN_IF_ERROR(ReadOperations(message.blocks(i), program->block(i), program->block_count()));
  return program;
}

}  // namespace regatta::program
