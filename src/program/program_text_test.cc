#include "program/program_text.h"

#include "program/optimizers/optimizer.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

using ProgramTextTest = NetworkTest;

TEST_F(ProgramTextTest, FitALineWithSgd) {
  Variable* loss = FitALine();
  Optimizer sgd = *Optimizer::Make({.type = "SGD", .learning_rate = 0.001});
  ASSERT_TRUE(sgd.Minimize(builder_, loss).ok());
  EXPECT_EQ(ProgramText(main_),
            R"(program, random_seed 0
block 0
  data x: float32 [-1, 13]
  data y: float32 [-1, 1]
  parameter fc_0.w_0: float32 [13, 1]
  fc_0.tmp_0: float32 [-1, 1]
  parameter fc_0.b_0: float32 [1]
  fc_0.tmp_1: float32 [-1, 1]
  square_error_cost_0.tmp_0: float32 [-1, 1]
  square_error_cost_0.tmp_1: float32 [-1, 1]
  mean_0.tmp_0: float32 [1]
  mean_0.tmp_0@GRAD: float32 [1]
  square_error_cost_0.tmp_1@GRAD: float32 [-1, 1]
  square_error_cost_0.tmp_0@GRAD: float32 [-1, 1]
  fc_0.tmp_1@GRAD: float32 [-1, 1]
  fc_0.b_0@GRAD: float32 [1]
  fc_0.tmp_0@GRAD: float32 [-1, 1]
  fc_0.w_0@GRAD: float32 [13, 1]
  state learning_rate_0: float32 [1]
  Out=fc_0.tmp_0 <- mul(X=x, Y=fc_0.w_0)
  Out=fc_0.tmp_1 <- elementwise_add(X=fc_0.tmp_0, Y=fc_0.b_0, axis: 1)
  Out=square_error_cost_0.tmp_0 <- elementwise_sub(X=fc_0.tmp_1, Y=y)
  Out=square_error_cost_0.tmp_1 <- square(X=square_error_cost_0.tmp_0)
  Out=mean_0.tmp_0 <- mean(X=square_error_cost_0.tmp_1)
  Gradients=[mean_0.tmp_0@GRAD, square_error_cost_0.tmp_1@GRAD, square_error_cost_0.tmp_0@GRAD, fc_0.tmp_1@GRAD, fc_0.b_0@GRAD, fc_0.tmp_0@GRAD, fc_0.w_0@GRAD] <- backward(Targets=mean_0.tmp_0, Inputs=[mean_0.tmp_0, square_error_cost_0.tmp_1, square_error_cost_0.tmp_0, fc_0.tmp_1, fc_0.b_0, fc_0.tmp_0, fc_0.w_0]) [backward]
  ParamOut=fc_0.b_0 <- sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, Grad=fc_0.b_0@GRAD) [optimize]
  ParamOut=fc_0.w_0 <- sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, Grad=fc_0.w_0@GRAD) [optimize]
)");
  EXPECT_EQ(OperationsText(startup_),
            "Out=fc_0.w_0 <- uniform_random(max: 0.6546536707079771, min: -0.6546536707079771, shape: [13, 1])\n"
            "Out=fc_0.b_0 <- fill_constant(shape: [1])\n"
            "Out=learning_rate_0 <- fill_constant(shape: [1], value: 0.001)\n");
}

TEST_F(ProgramTextTest, NamesOfTheUserCannotForgeALine) {
  Data("a\nblock 1", {1});
  EXPECT_EQ(ProgramText(main_), "program, random_seed 0\nblock 0\n  data a\\nblock 1: float32 [-1, 1]\n");
}

TEST_F(ProgramTextTest, BlocksNameTheirParent) {
  main_.AddBlock(main_.global_block());
  EXPECT_EQ(ProgramText(main_), "program, random_seed 0\nblock 0\nblock 1 in block 0\n");
}

}  // namespace
}  // namespace regatta::program
