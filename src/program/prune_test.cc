#include "program/prune.h"

#include "program/clone.h"
#include "program/layers/learning_rate.h"
#include "program/layers/normalization.h"
#include "program/optimizers/optimizer.h"
#include "program/test_network.h"

namespace regatta::program {
namespace {

class PruneTest : public NetworkTest {
 protected:
  // x → fc → dropout → fc → error to y, trained by adam with a schedule.
  void Train() {
    Variable* x = Data("x", {13});
    Variable* hidden = Must(layers::Fc(builder_, {x}, {.size = 4, .activation = "relu"}));
    Variable* dropped = Must(layers::Dropout(builder_, hidden, {}));
    prediction_ = Must(layers::Fc(builder_, {dropped}, {.size = 1}));
    Variable* loss = Must(layers::Mean(builder_, Must(layers::SquareErrorCost(builder_, prediction_, Data("y", {1})))));
    Variable* rate = Must(layers::NaturalExpDecay(builder_, {.learning_rate = 0.1, .decay_rate = 0.5}));
    Optimizer adam = *Optimizer::Make({.type = "Adam", .learning_rate = rate});
    Must(adam.Minimize(builder_, loss));
  }
  std::string Types(const Program& program) {
    std::string text;
    for (const auto& operation : program.global_block().operations()) absl::StrAppend(&text, operation->type, " ");
    return text;
  }

  Variable* prediction_ = nullptr;
};

TEST_F(PruneTest, ACloneIsTheSameAndApart) {
  Train();
  main_.set_random_seed(3);
  Block& inner = main_.AddBlock(main_.global_block());
  main_.AddBlock(inner);
  const auto copy = Clone(main_);
  EXPECT_EQ(ProgramText(*copy), ProgramText(main_));
  copy->global_block().RemoveOperations(0, 1);
  EXPECT_NE(ProgramText(*copy), ProgramText(main_));
}

TEST_F(PruneTest, ACloneForTestOnlyPredicts) {
  Train();
  const auto copy = CloneForTest(main_);
  EXPECT_EQ(Types(*copy), "mul elementwise_add relu dropout mul elementwise_add elementwise_sub square mean ");
  EXPECT_TRUE(copy->global_block().operations()[3]->attributes.Bool("is_test"));
  EXPECT_FALSE(main_.global_block().operations()[4]->attributes.Bool("is_test"));
  for (const char* gone : {"fc_0.w_0@GRAD", "fc_0.w_0_moment1_0", "@LR_DECAY_COUNTER@", "tmp_0"})
    EXPECT_EQ(copy->global_block().Find(gone), nullptr) << gone;
  for (const char* kept : {"x", "y", "fc_0.w_0", "mean_0.tmp_0"})
    EXPECT_NE(copy->global_block().Find(kept), nullptr) << kept;
}

TEST_F(PruneTest, AnInferenceProgramHasWhatItsTargetsNeed) {
  Train();
  const auto program = Must(InferenceProgram(main_, {"x"}, {prediction_->name}));
  EXPECT_EQ(Types(*program), "feed mul elementwise_add relu dropout mul elementwise_add fetch ");
  EXPECT_EQ(program->global_block().Find("y"), nullptr);
  EXPECT_EQ(program->global_block().Find("mean_0.tmp_0"), nullptr);
  EXPECT_EQ(FeedsOf(*program), (std::vector<std::string>{"x"}));
  EXPECT_EQ(FetchesOf(*program), (std::vector<std::string>{"fc_1.tmp_1"}));
  EXPECT_EQ(FeedsOf(main_), std::vector<std::string>());
}

TEST_F(PruneTest, AFeedMayBeInTheMiddle) {
  Train();
  const auto program = Must(Prune(main_, {"fc_0.tmp_2"}, {prediction_->name}));
  EXPECT_EQ(Types(*program), "dropout mul elementwise_add ");
  EXPECT_EQ(program->global_block().Find("fc_0.w_0"), nullptr);
}

TEST_F(PruneTest, WhatOnlyWritesASecondOutputGoes) {
  Variable* x = Data("x", {5});
  Variable* place = Must(builder_.CreateVariable("place", DataType::kInt64));
  for (const char* name : {"first", "second"}) {
    Variable* top = Must(builder_.CreateVariable(name, DataType::kFloat32));
    Must(builder_.Append("top_k", {{"X", x}}, {{"Out", top}, {"Indices", place}}));
  }
  const auto program = Must(Prune(main_, {"x"}, {"second_0"}));
  EXPECT_EQ(Types(*program), "top_k ");
  EXPECT_NE(program->global_block().Find("place_0"), nullptr);
  EXPECT_EQ(program->global_block().Find("first_0"), nullptr);
}

TEST_F(PruneTest, WhatCannotBeIsNamed) {
  Train();
  EXPECT_EQ(InferenceProgram(main_, {"x"}, {"nobody"}).status().message(),
            "the target 'nobody' is no variable of the program's first block");
  EXPECT_EQ(InferenceProgram(main_, {"z"}, {"fc_1.tmp_1"}).status().message(),
            "the feed 'z' is no variable of the program's first block");
  EXPECT_EQ(InferenceProgram(main_, {"x"}, {"mean_0.tmp_0"}).status().message(),
            "the targets need 'y', which is not fed; add it to feeded_var_names");
  EXPECT_EQ(InferenceProgram(main_, {"x"}, {"fc_0.w_0@GRAD"}).status().message(),
            "the target 'fc_0.w_0@GRAD' belongs to the training alone; give one of the network");
}

TEST_F(PruneTest, ALoopKeepsWhatItsBodyReads) {
  Variable* x = Data("x", {3});
  Variable* kept = Must(ApplyOperator(builder_, "relu", {{"X", x}}));
  Variable* unused = Must(ApplyOperator(builder_, "tanh", {{"X", x}}));
  Variable* condition = Must(builder_.CreateVariable("condition", DataType::kBool));
  Variable* out = Must(builder_.CreateVariable("out", DataType::kFloat32));
  Block& body = main_.AddBlock(main_.global_block());
  Block& other = main_.AddBlock(main_.global_block());
  {
    const BlockScope scope(builder_, body);
    Must(builder_.Append("square", {{"X", kept}}, {{"Out", out}}));
  }
  {
    const BlockScope scope(builder_, other);
    Must(builder_.Append("square", {{"X", unused}}, {{"Out", out}}));
  }
  Must(builder_.Append("while", {{"Condition", condition}}, {{"Out", out}}, {{"sub_block", BlockIndex{1}}}));
  const auto program = Must(Prune(main_, {"x"}, {out->name}));
  EXPECT_EQ(Types(*program), "relu while ");
  EXPECT_EQ(program->block(1).operations().size(), 1u);
  EXPECT_EQ(program->block(2).operations().size(), 0u);
}

}  // namespace
}  // namespace regatta::program
