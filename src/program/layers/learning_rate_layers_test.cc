#include "program/layers/learning_rate.h"
#include "program/optimizers/optimizer.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

using LearningRateLayersTest = NetworkTest;

TEST_F(LearningRateLayersTest, ASchedulePutsTheCounterFirst) {
  Variable* loss = FitALine();
  Variable* rate = Must(layers::ExponentialDecay(
      builder_, {.learning_rate = 0.1, .decay_steps = 100, .decay_rate = 0.5, .staircase = true}));
  Optimizer sgd = *Optimizer::Make({.type = "SGD", .learning_rate = rate});
  Must(sgd.Minimize(builder_, loss));
  const auto& operations = main_.global_block().operations();
  EXPECT_EQ(OperationText(*operations.front()),
            "Out=@LR_DECAY_COUNTER@ <- increment(X=@LR_DECAY_COUNTER@) [lr_schedule]");
  EXPECT_EQ(OperationText(*operations[6]),
            "Out=tmp_0 <- lr_schedule(Step=@LR_DECAY_COUNTER@, decay_rate: 0.5, decay_steps: 100, learning_rate: 0.1, "
            "staircase: true) [lr_schedule]");
  EXPECT_EQ(OperationText(*operations.back()),
            "ParamOut=fc_0.w_0 <- sgd(Param=fc_0.w_0, LearningRate=tmp_0, Grad=fc_0.w_0@GRAD) [optimize]");
  EXPECT_EQ(OperationText(*startup_.global_block().operations().back()),
            "Out=@LR_DECAY_COUNTER@ <- fill_constant(dtype: 3, shape: [1], value: -1)");
}

TEST_F(LearningRateLayersTest, EveryScheduleIsOneOperation) {
  Must(layers::NaturalExpDecay(builder_, {.learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5}));
  Must(layers::InverseTimeDecay(builder_, {.learning_rate = 0.1, .decay_steps = 2, .decay_rate = 0.5}));
  Must(layers::PolynomialDecay(builder_, {.learning_rate = 0.1, .decay_steps = 20, .power = 2}));
  Must(layers::PiecewiseDecay(builder_, {10, 20}, {1, 0.5, 0.1}));
  Must(layers::NoamDecay(builder_, 64, 100));
  Variable* cosine = Must(layers::CosineDecay(builder_, 0.1, 10, 5));
  Must(layers::LinearWarmup(builder_, cosine, 50, 0.01, 0.1));
  Must(layers::LinearWarmup(builder_, 0.1, 50, 0.01, 0.1));
  EXPECT_EQ(
      OperationsText(main_, 1),
      "Out=tmp_0 <- lr_schedule(Step=@LR_DECAY_COUNTER@, decay_rate: 0.5, decay_steps: 2, kind: \"natural_exp\", "
      "learning_rate: 0.1) [lr_schedule]\n"
      "Out=tmp_1 <- lr_schedule(Step=@LR_DECAY_COUNTER@, decay_rate: 0.5, decay_steps: 2, kind: \"inverse_time\", "
      "learning_rate: 0.1) [lr_schedule]\n"
      "Out=tmp_2 <- lr_schedule(Step=@LR_DECAY_COUNTER@, decay_steps: 20, end_learning_rate: 1e-04, kind: "
      "\"polynomial\", learning_rate: 0.1, power: 2) [lr_schedule]\n"
      "Out=learning_rate <- lr_schedule(Step=@LR_DECAY_COUNTER@, boundaries: [10, 20], kind: \"piecewise\", values: "
      "[1, 0.5, "
      "0.1]) [lr_schedule]\n"
      "Out=tmp_3 <- lr_schedule(Step=@LR_DECAY_COUNTER@, d_model: 64, kind: \"noam\", learning_rate: 1, "
      "warmup_steps: 100) [lr_schedule]\n"
      "Out=tmp_4 <- lr_schedule(Step=@LR_DECAY_COUNTER@, epochs: 5, kind: \"cosine\", learning_rate: 0.1, "
      "step_each_epoch: 10) [lr_schedule]\n"
      "Out=learning_rate_warmup <- lr_schedule(Step=@LR_DECAY_COUNTER@, LearningRate=tmp_4, end_lr: 0.1, kind: "
      "\"linear_warmup\", "
      "start_lr: 0.01, warmup_steps: 50) [lr_schedule]\n"
      "Out=tmp_5 <- lr_schedule(Step=@LR_DECAY_COUNTER@, end_lr: 0.1, kind: \"linear_warmup\", learning_rate: 0.1, "
      "start_lr: 0.01, warmup_steps: 50) [lr_schedule]\n");
}

TEST_F(LearningRateLayersTest, ImpossibleSettingsAreRefused) {
  EXPECT_EQ(layers::PiecewiseDecay(builder_, {10, 20}, {1}).status().message(),
            "lr_schedule: there are 2 boundaries and 1 values; want one value more than boundaries");
  EXPECT_EQ(layers::ExponentialDecay(builder_, {.learning_rate = 0.1, .decay_steps = 0}).status().message(),
            "decay_steps is 0; want more than 0");
}

TEST_F(LearningRateLayersTest, NoamCountsFromOne) {
  Must(layers::NoamDecay(builder_, 64, 100));
  EXPECT_EQ(OperationsText(startup_), "Out=@LR_DECAY_COUNTER@ <- fill_constant(dtype: 3, shape: [1])\n");
}

TEST_F(LearningRateLayersTest, AProgramMayCountStepsOfItsOwn) {
  Variable* counter = Must(layers::StepCounter(builder_, layers::kStepCounter, 1, 2));
  EXPECT_EQ(Must(layers::StepCounter(builder_, layers::kStepCounter)), counter);
  EXPECT_EQ(OperationsText(main_), "Out=@STEP_COUNTER@ <- increment(X=@STEP_COUNTER@, step: 2)\n");
  EXPECT_EQ(OperationsText(startup_), "Out=@STEP_COUNTER@ <- fill_constant(dtype: 3, shape: [1], value: -1)\n");
}

}  // namespace
}  // namespace regatta::program
