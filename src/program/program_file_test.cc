#include "program/program_file.h"

#include <cstdlib>

#include "base/file.h"
#include "program/layers/metric.h"
#include "program/layers/sequence.h"
#include "program/optimizers/optimizer.h"
#include "program/program.pb.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

const char kGolden[] = REGATTA_TEST_DATA "/program_v1/program";

class ProgramFileTest : public NetworkTest {
 protected:
  // A network with what a file can hold: lookups, sequences, states, regularizers, clips, sites, blocks.
  void Build() {
    main_.set_random_seed(7);
    builder_.set_site({"layers.embedding", "train.py", 12});
    Variable* ids = Data("ids", {1}, DataType::kInt64, 1);
    ParameterAttributes table;
    table.name = "table";
    table.traits.learning_rate = 0.5;
    table.traits.regularizer = Regularizer{Regularizer::Kind::kL1, 0.25};
    table.traits.gradient_clip = GradientClip{.kind = GradientClip::Kind::kNorm, .limit = 3};
    Variable* rows = Must(layers::Embedding(
        builder_, ids, {.size = {100, 8}, .is_sparse = true, .is_distributed = true, .weight = table}));
    Variable* pooled = Must(layers::SequencePool(builder_, rows, "sum"));
    Variable* out = Must(layers::Fc(builder_, {pooled}, {.size = 2, .activation = "softmax"}));
    Must(layers::AucOf(builder_, out, Data("label", {1}, DataType::kInt64)));
    Optimizer adam = *Optimizer::Make({.type = "Adam"});
    Must(adam.Minimize(builder_, Must(layers::Mean(builder_, out))));
    Variable* condition = Must(builder_.CreateVariable("condition", DataType::kBool));
    main_.AddBlock(main_.AddBlock(main_.global_block()));
    Must(builder_.Append("while", {{"Condition", condition}}, {}, {{"sub_block", BlockIndex{1}}}));
  }
  static std::string Message(const ProgramMessage& message) {
    return std::string(ParsePayload(message.SerializeAsString()).status().message());
  }
  ProgramMessage Built() {
    Build();
    ProgramMessage message;
    EXPECT_TRUE(message.ParseFromString(SerializePayload(main_)));
    return message;
  }
};

TEST_F(ProgramFileTest, AProgramIsReadAsItWas) {
  Build();
  const std::string bytes = SerializeProgram(main_);
  const auto read = Must(ParseProgram(bytes));
  EXPECT_EQ(ProgramText(*read), ProgramText(main_));
  EXPECT_EQ(SerializeProgram(*read), bytes);
  for (size_t i = 0; i < main_.block_count(); ++i) {
    const Block &was = main_.block(i), &is = read->block(i);
    ASSERT_EQ(was.variables().size(), is.variables().size());
    for (size_t j = 0; j < was.variables().size(); ++j) EXPECT_EQ(*was.variables()[j], *is.variables()[j]);
    ASSERT_EQ(was.operations().size(), is.operations().size());
    for (size_t j = 0; j < was.operations().size(); ++j) EXPECT_EQ(*was.operations()[j], *is.operations()[j]);
  }
}

TEST_F(ProgramFileTest, TheGoldenFileIsReadForEver) {
  Build();
  if (std::getenv("REGATTA_WRITE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::WriteFileAtomically(kGolden, SerializeProgram(main_)).ok());
  }
  const std::string golden = Must(base::ReadFile(kGolden));
  EXPECT_EQ(ProgramText(*Must(ParseProgram(golden))), ProgramText(main_));
}

TEST_F(ProgramFileTest, EveryDamagedByteIsNoticed) {
  FitALine();
  const std::string bytes = SerializeProgram(main_);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(ParseProgram(damaged).ok()) << i;
    EXPECT_FALSE(ParseProgram(bytes.substr(0, i)).ok()) << i;
  }
}

TEST_F(ProgramFileTest, BytesOfOthersAreNamed) {
  EXPECT_EQ(ParseProgram("no program at all").status().message(),
            "these bytes are no Regatta program; want a file that save_inference_model wrote");
  std::string later = SerializeProgram(main_);
  later[8] = 2;
  EXPECT_EQ(
      ParseProgram(later).status().message(),
      "the program has format version 2, and this Regatta reads 1; use the Regatta that wrote it, or a newer one");
  std::string damaged = SerializeProgram(main_);
  damaged.back() ^= 1;
  EXPECT_EQ(ParseProgram(damaged).status().message(),
            "the program's checksum does not match its bytes: it is damaged; write or copy it again");
  EXPECT_EQ(ParsePayload("\xff\xff").status().message(), "its messages cannot be read: the bytes are damaged");
}

TEST_F(ProgramFileTest, UnknownOperatorsAndAttributesAreRefusedByName) {
  ProgramMessage message = Built();
  message.mutable_blocks(0)->mutable_operations(1)->set_type("sequence_pooling\n");
  EXPECT_EQ(
      Message(message),
      "block 0: operation 1: layers.embedding (train.py:12): there is no operator 'sequence_pooling\\n'; did you mean "
      "'sequence_pool'?");
  message.mutable_blocks(0)->mutable_operations(1)->set_type("sequence_pool");
  message.mutable_blocks(0)->mutable_operations(1)->mutable_attributes(0)->set_name("pool");
  EXPECT_EQ(Message(message),
            "block 0: operation 1: layers.embedding (train.py:12): sequence_pool: there is no attribute 'pool'; its "
            "attributes are is_test, pooltype, pad_value");
}

TEST_F(ProgramFileTest, FieldsThatCannotBeAreRefused) {
  const ProgramMessage good = Built();
  const auto with = [&](auto change) {
    ProgramMessage message = good;
    change(message);
    return Message(message);
  };
  EXPECT_EQ(with([](ProgramMessage& m) { m.clear_blocks(); }), "it has 0 blocks; want 1 to 4096");
  EXPECT_EQ(with([](ProgramMessage& m) { m.mutable_blocks(1)->set_parent(1); }),
            "block 1: its parent is 1; want a block before it");
  EXPECT_EQ(with([](ProgramMessage& m) { m.mutable_blocks(0)->mutable_variables(0)->set_kind(9); }),
            "block 0: variable 'ids': kind is 9, which this version does not know");
  EXPECT_EQ(with([](ProgramMessage& m) { m.mutable_blocks(0)->mutable_variables(0)->set_dtype(77); }),
            "block 0: variable 'ids': dtype is 77, which this version does not know");
  EXPECT_EQ(with([](ProgramMessage& m) { m.mutable_blocks(0)->mutable_variables(0)->set_shape(0, -2); }),
            "block 0: variable 'ids': an extent is -2, which this version does not know");
  EXPECT_EQ(with([](ProgramMessage& m) { m.mutable_blocks(0)->mutable_variables(0)->set_lod_level(17); }),
            "block 0: variable 'ids': lod_level is 17, which this version does not know");
  EXPECT_EQ(with([](ProgramMessage& m) { m.mutable_blocks(0)->mutable_variables(1)->set_name("ids"); }),
            "variable 1: block 0 has a variable 'ids' already; give the new one another name");
  EXPECT_EQ(with([](ProgramMessage& m) { m.mutable_blocks(0)->mutable_operations(0)->set_role(6); }),
            "block 0: operation 0: role is 6, which this version does not know");
  EXPECT_EQ(
      with([](ProgramMessage& m) { m.mutable_blocks(0)->mutable_operations(0)->mutable_attributes(0)->clear_value(); }),
      "block 0: operation 0: layers.embedding (train.py:12): lookup_table: attribute 'entry': it has no value that "
      "this version knows");
  EXPECT_EQ(
      with([](ProgramMessage& m) {
        auto& loop = *m.mutable_blocks(0)->mutable_operations(m.blocks(0).operations_size() - 1);
        for (auto& attribute : *loop.mutable_attributes())
          if (attribute.name() == "sub_block") attribute.set_block(3);
      }),
      "block 0: operation 17: layers.embedding (train.py:12): while: attribute 'sub_block': it names block 3, and "
      "there are 3");
}

}  // namespace
}  // namespace regatta::program
