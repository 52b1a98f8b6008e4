#include "program/append.h"

#include <gtest/gtest.h>

#include "program/program.h"

namespace regatta::program {
namespace {

// A program with the variables of a small network.
class AppendTest : public testing::Test {
 protected:
  AppendTest() {
    Declare("x", {-1, 13});
    Declare("w", {13, 1});
    Declare("y", {-1, 1});
    Declare("ids", {-1, 1}, DataType::kInt64);
    Declare("out", {});
  }

  Block& block() { return program_.global_block(); }
  void Declare(const std::string& name, Shape shape, DataType dtype = DataType::kFloat32) {
    Variable variable;
    variable.name = name;
    variable.shape = std::move(shape);
    variable.dtype = dtype;
    ASSERT_TRUE(block().AddVariable(variable).ok());
  }
  // "" if it was taken, otherwise the message.
  std::string Append(const std::string& type, Slots inputs, Attributes attributes = {},
                     Slots outputs = {{"Out", {"out"}}}) {
    Operation operation;
    operation.type = type;
    operation.inputs = std::move(inputs);
    operation.outputs = std::move(outputs);
    operation.attributes = std::move(attributes);
    operation.site = {"layers.fc", "train.py", 31};
    return std::string(AppendOperation(block(), std::move(operation)).status().message());
  }

  Program program_;
};

TEST_F(AppendTest, InfersTheOutput) {
  EXPECT_EQ(Append("mul", {{"X", {"x"}}, {"Y", {"w"}}}), "");
  EXPECT_EQ(TypeText(*block().Find("out")), "float32 [-1, 1]");
}

TEST_F(AppendTest, FillsDefaultsAndConvertsValues) {
  EXPECT_EQ(Append("scale", {{"X", {"x"}}}, {{"scale", int64_t{2}}}), "");
  const Attributes& attributes = block().operations().back()->attributes;
  EXPECT_EQ(attributes.Float("scale"), 2);
  EXPECT_EQ(attributes.Bool("bias_after_scale"), true);
  EXPECT_EQ(attributes.size(), 3u);
}

TEST_F(AppendTest, DropsHints) {
  EXPECT_EQ(Append("relu", {{"X", {"x"}}}, {{"use_cudnn", true}, {"use_mkldnn", false}}), "");
  EXPECT_EQ(block().operations().back()->attributes.size(), 0u);
}

TEST_F(AppendTest, ShapesThatDoNotFitNameTheCallAndTheLine) {
  Declare("short", {12, 1});
  EXPECT_EQ(
      Append("mul", {{"X", {"x"}}, {"Y", {"short"}}}),
      "layers.fc (train.py:31): mul: X is [-1, 13] and Y is [12, 1]: 13 and 12 differ; the columns of X must be the "
      "rows of Y");
  EXPECT_TRUE(block().operations().empty());
}

TEST_F(AppendTest, UnknownOperatorsAreNamedWithTheMostSimilarOne) {
  EXPECT_EQ(Append("sofmax", {{"X", {"x"}}}),
            "layers.fc (train.py:31): there is no operator 'sofmax'; did you mean 'softmax'?");
}

TEST_F(AppendTest, SlotsAreCheckedAgainstTheSchema) {
  EXPECT_EQ(Append("mul", {{"X", {"x"}}}), "layers.fc (train.py:31): mul: input Y is missing; give it a variable");
  EXPECT_EQ(Append("mul", {{"X", {"x"}}, {"Z", {"w"}}}),
            "layers.fc (train.py:31): mul: there is no input 'Z'; its inputs are X, Y");
  EXPECT_EQ(Append("mul", {{"X", {"x"}}, {"Y", {"w", "w"}}}),
            "layers.fc (train.py:31): mul: input Y takes one variable and got 2; give it one");
  EXPECT_EQ(Append("mul", {{"X", {"x"}}, {"X", {"x"}}, {"Y", {"w"}}}),
            "layers.fc (train.py:31): mul: input X is given twice; give it once");
  EXPECT_EQ(
      Append("mul", {{"X", {"x"}}, {"Y", {"v"}}}),
      "layers.fc (train.py:31): mul: input Y names the variable 'v', which block 0 does not have; create it first, "
      "in the same program");
  EXPECT_EQ(Append("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {}, {}),
            "layers.fc (train.py:31): mul: output Out is missing; give it a variable");
}

TEST_F(AppendTest, AttributesAreCheckedAgainstTheSchema) {
  EXPECT_EQ(Append("softmax", {{"X", {"x"}}}, {{"axes", int64_t{1}}}),
            "layers.fc (train.py:31): softmax: there is no attribute 'axes'; did you mean 'axis'?");
  EXPECT_EQ(Append("softmax", {{"X", {"x"}}}, {{"axis", 0.5}}),
            "layers.fc (train.py:31): softmax: attribute axis is 0.5, of type float; want int");
  EXPECT_EQ(Append("clip", {{"X", {"x"}}}, {{"min", 0.5}}),
            "layers.fc (train.py:31): clip: attribute max is missing; give it a float");
  EXPECT_EQ(Append("prelu", {{"X", {"x"}}, {"Alpha", {"w"}}}, {{"mode", std::string("each")}}),
            "layers.fc (train.py:31): prelu: attribute mode is \"each\"; want one of all, channel, element");
}

TEST_F(AppendTest, IdsMustBeIntegers) {
  EXPECT_EQ(Append("lookup_table", {{"W", {"w"}}, {"Ids", {"y"}}}),
            "layers.fc (train.py:31): lookup_table: Ids is float32 [-1, 1]; want int64 (layers.cast, or dtype='int64' "
            "where it is declared)");
  EXPECT_EQ(Append("lookup_table", {{"W", {"w"}}, {"Ids", {"ids"}}}), "");
}

TEST_F(AppendTest, TextOfTheUserCannotForgeALine) {
  EXPECT_EQ(Append("mul\nok", {}),
            "layers.fc (train.py:31): there is no operator 'mul\\nok' in this version (docs/operators.md)");
}

TEST_F(AppendTest, NamesAreLookedUpInTheBlocksAround) {
  Block& inner = program_.AddBlock(block());
  Variable out;
  out.name = "inner_out";
  ASSERT_TRUE(inner.AddVariable(out).ok());
  Operation operation;
  operation.type = "relu";
  operation.inputs = {{"X", {"x"}}};
  operation.outputs = {{"Out", {"inner_out"}}};
  ASSERT_TRUE(AppendOperation(inner, operation).ok());
  EXPECT_EQ(inner.FindHere("inner_out")->shape, (Shape{-1, 13}));
  EXPECT_EQ(block().Find("inner_out"), nullptr);
}

TEST_F(AppendTest, AnOperationCanBeInserted) {
  Declare("out2", {});
  EXPECT_EQ(Append("relu", {{"X", {"x"}}}), "");
  Operation operation;
  operation.type = "tanh";
  operation.inputs = {{"X", {"x"}}};
  operation.outputs = {{"Out", {"out2"}}};
  ASSERT_TRUE(InsertOperation(block(), 0, operation).ok());
  EXPECT_EQ(block().operations()[0]->type, "tanh");
  EXPECT_EQ(block().operations()[1]->type, "relu");
}

}  // namespace
}  // namespace regatta::program
