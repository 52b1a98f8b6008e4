#include "program/block.h"

#include <gtest/gtest.h>

#include "program/program.h"

namespace regatta::program {
namespace {

Variable Named(const std::string& name) {
  Variable variable;
  variable.name = name;
  return variable;
}

TEST(Block, KeepsTheOrderAndTheAddresses) {
  Program program;
  Block& block = program.global_block();
  const Variable* first = *block.AddVariable(Named("v0"));
  for (int i = 1; i < 100; ++i) ASSERT_TRUE(block.AddVariable(Named(absl::StrCat("v", i))).ok());
  EXPECT_EQ(block.Find("v0"), first);
  EXPECT_EQ(block.variables()[99]->name, "v99");
}

TEST(Block, RefusesANameThatIsTaken) {
  Program program;
  ASSERT_TRUE(program.global_block().AddVariable(Named("w")).ok());
  EXPECT_EQ(program.global_block().AddVariable(Named("w")).status().message(),
            "block 0 has a variable 'w' already; give the new one another name");
  EXPECT_EQ(program.global_block().AddVariable(Named("")).status().message(), "a variable without a name; give it one");
}

TEST(Block, ARenamedVariableIsRenamedInOperations) {
  Program program;
  Block& block = program.global_block();
  ASSERT_TRUE(block.AddVariable(Named("a_name_that_is_long_enough_to_be_on_the_heap")).ok());
  Operation operation;
  operation.type = "relu";
  operation.inputs = {{"X", {"a_name_that_is_long_enough_to_be_on_the_heap"}}};
  block.AddOperation(operation);
  ASSERT_TRUE(block.RenameVariable("a_name_that_is_long_enough_to_be_on_the_heap", "b").ok());
  EXPECT_EQ(block.operations()[0]->Input("X"), Names{"b"});
  EXPECT_NE(block.Find("b"), nullptr);
  EXPECT_EQ(block.Find("a_name_that_is_long_enough_to_be_on_the_heap"), nullptr);
}

TEST(Block, ARemovedVariableIsGone) {
  Program program;
  Block& block = program.global_block();
  ASSERT_TRUE(block.AddVariable(Named("a")).ok());
  ASSERT_TRUE(block.AddVariable(Named("b")).ok());
  block.RemoveVariables([](const Variable& variable) { return variable.name == "a"; });
  EXPECT_EQ(block.Find("a"), nullptr);
  ASSERT_EQ(block.variables().size(), 1u);
  EXPECT_EQ(block.variables()[0]->name, "b");
}

}  // namespace
}  // namespace regatta::program
