#include "program/optimizers/optimizer.h"

#include "program/test_network.h"

namespace regatta::program {
namespace {

class OptimizerTest : public NetworkTest {
 protected:
  // The operations behind the backward pass.
  std::string Minimize(OptimizerOptions options) {
    Variable* loss = FitALine();
    Optimizer optimizer = Must<std::optional<Optimizer>>(Optimizer::Make(std::move(options))).value();
    const Minimized made = Must(optimizer.Minimize(builder_, loss));
    EXPECT_EQ(made.gradients.size(), 2u);
    EXPECT_EQ(made.operations.size(), 2u);
    return OperationsText(main_, 6);
  }
  // Only what updates the weights.
  std::string UpdateOfWeights(OptimizerOptions options) {
    std::string text;
    Minimize(std::move(options));
    for (const auto& operation : main_.global_block().operations())
      if (operation->role == Role::kOptimize && operation->role_variables[0] == "fc_0.w_0")
        absl::StrAppend(&text, OperationText(*operation), "\n");
    return text;
  }
};

TEST_F(OptimizerTest, AdamKeepsMomentsAndPowers) {
  EXPECT_EQ(UpdateOfWeights({.type = "AdamOptimizer", .arguments = {{"lazy_mode", true}}}),
            "ParamOut=fc_0.w_0, Moment1Out=fc_0.w_0_moment1_0, Moment2Out=fc_0.w_0_moment2_0, "
            "Beta1PowOut=fc_0.w_0_beta1_pow_acc_0, Beta2PowOut=fc_0.w_0_beta2_pow_acc_0 <- adam(Param=fc_0.w_0, "
            "Grad=fc_0.w_0@GRAD, LearningRate=learning_rate_0, Moment1=fc_0.w_0_moment1_0, "
            "Moment2=fc_0.w_0_moment2_0, Beta1Pow=fc_0.w_0_beta1_pow_acc_0, Beta2Pow=fc_0.w_0_beta2_pow_acc_0, "
            "lazy_mode: true) [optimize]\n");
  EXPECT_EQ(TypeOf("fc_0.w_0_moment1_0"), "float32 [13, 1]");
  EXPECT_EQ(OperationsText(startup_, 8),
            "Out=fc_0.w_0_beta1_pow_acc_0 <- fill_constant(shape: [1], value: 0.9)\n"
            "Out=fc_0.w_0_beta2_pow_acc_0 <- fill_constant(shape: [1], value: 0.999)\n"
            "Out=learning_rate_0 <- fill_constant(shape: [1], value: 0.001)\n");
}

TEST_F(OptimizerTest, AdagradBeginsWhereItIsTold) {
  EXPECT_EQ(UpdateOfWeights({.type = "Adagrad", .arguments = {{"initial_accumulator_value", 0.5}}}),
            "ParamOut=fc_0.w_0, MomentOut=fc_0.w_0_moment_0 <- adagrad(Param=fc_0.w_0, Grad=fc_0.w_0@GRAD, "
            "Moment=fc_0.w_0_moment_0, LearningRate=learning_rate_0) [optimize]\n");
  EXPECT_EQ(OperationText(*startup_.global_block().operations()[3]),
            "Out=fc_0.w_0_moment_0 <- fill_constant(shape: [13, 1], value: 0.5)");
}

TEST_F(OptimizerTest, MomentumNeedsItsMomentum) {
  EXPECT_EQ(Optimizer::Make({.type = "Momentum"}).status().message(), "optimizer.Momentum needs the argument momentum");
  EXPECT_EQ(UpdateOfWeights({.type = "Momentum", .arguments = {{"momentum", 0.9}, {"use_nesterov", true}}}),
            "ParamOut=fc_0.w_0, VelocityOut=fc_0.w_0_velocity_0 <- momentum(Param=fc_0.w_0, Grad=fc_0.w_0@GRAD, "
            "Velocity=fc_0.w_0_velocity_0, LearningRate=learning_rate_0, mu: 0.9, use_nesterov: true) [optimize]\n");
}

TEST_F(OptimizerTest, AdamaxAdvancesItsPowerAfterTheStep) {
  EXPECT_EQ(UpdateOfWeights({.type = "Adamax"}),
            "ParamOut=fc_0.w_0, MomentOut=fc_0.w_0_moment_0, InfNormOut=fc_0.w_0_inf_norm_0 <- adamax(Param=fc_0.w_0, "
            "Grad=fc_0.w_0@GRAD, LearningRate=learning_rate_0, Moment=fc_0.w_0_moment_0, InfNorm=fc_0.w_0_inf_norm_0, "
            "Beta1Pow=fc_0.w_0_beta1_pow_acc_0) [optimize]\n"
            "Out=fc_0.w_0_beta1_pow_acc_0 <- scale(X=fc_0.w_0_beta1_pow_acc_0, scale: 0.9) [optimize]\n");
}

TEST_F(OptimizerTest, FtrlAndRmspropGiveTheirArguments) {
  EXPECT_EQ(UpdateOfWeights({.type = "Ftrl", .arguments = {{"l1", 0.1}, {"l2", 0.2}}}),
            "ParamOut=fc_0.w_0, SquaredAccumOut=fc_0.w_0_squared_0, LinearAccumOut=fc_0.w_0_linear_0 <- "
            "ftrl(Param=fc_0.w_0, SquaredAccumulator=fc_0.w_0_squared_0, LinearAccumulator=fc_0.w_0_linear_0, "
            "Grad=fc_0.w_0@GRAD, LearningRate=learning_rate_0, l1: 0.1, l2: 0.2) [optimize]\n");
}

TEST_F(OptimizerTest, RmspropCallsItsDecayRho) {
  EXPECT_EQ(UpdateOfWeights({.type = "RMSProp", .arguments = {{"rho", 0.8}}}),
            "ParamOut=fc_0.w_0, MomentOut=fc_0.w_0_momentum_0, MeanSquareOut=fc_0.w_0_mean_square_0, "
            "MeanGradOut=fc_0.w_0_mean_grad_0 <- rmsprop(Param=fc_0.w_0, MeanSquare=fc_0.w_0_mean_square_0, "
            "MeanGrad=fc_0.w_0_mean_grad_0, LearningRate=learning_rate_0, Grad=fc_0.w_0@GRAD, "
            "Moment=fc_0.w_0_momentum_0, decay: 0.8, epsilon: 1e-06) [optimize]\n");
}

TEST_F(OptimizerTest, EveryOptimizerMakesItsUpdates) {
  for (const OptimizerRow& row : AllOptimizers()) {
    Program main, startup;
    NameGenerator names;
    ProgramBuilder builder(main, startup, names);
    Variable* x = Must(layers::Data(builder, "x", {.shape = {3}}));
    Variable* loss = Must(layers::Mean(builder, Must(layers::Fc(builder, {x}, {.size = 2}))));
    OptimizerOptions options{.type = std::string(row.name)};
    for (const ArgumentRow& argument : row.arguments)
      if (argument.required) options.arguments.Set(std::string(argument.keyword), 0.5);
    Optimizer optimizer = *Optimizer::Make(options);
    const Minimized made = Must(optimizer.Minimize(builder, loss));
    ASSERT_EQ(made.operations.size(), 2u) << row.name;
    EXPECT_EQ(made.operations[0]->type, row.operator_type);
    EXPECT_EQ(made.operations[0]->role_variables, (Names{"fc_0.b_0", "fc_0.b_0@GRAD"}));
    // Every accumulator and the learning rate get a first value.
    EXPECT_EQ(startup.global_block().operations().size(), 3 + 2 * row.accumulators.size()) << row.name;
  }
}

TEST_F(OptimizerTest, ALearningRateOfItsOwnIsAFactor) {
  Variable* x = Data("x", {3});
  ParameterAttributes fast;
  fast.traits.learning_rate = 2;
  Variable* loss = Must(layers::Mean(
      builder_, Must(layers::Fc(builder_, {x}, {.size = 1, .weights = {fast}, .bias = {.wanted = false}}))));
  Optimizer sgd = *Optimizer::Make({.type = "SGD", .learning_rate = 0.1});
  Must(sgd.Minimize(builder_, loss));
  EXPECT_EQ(OperationsText(main_, 3),
            "Out=tmp_0 <- scale(X=learning_rate_0, scale: 2) [lr_schedule]\n"
            "ParamOut=fc_0.w_0 <- sgd(Param=fc_0.w_0, LearningRate=tmp_0, Grad=fc_0.w_0@GRAD) [optimize]\n");
}

TEST_F(OptimizerTest, ClipsBeforeItRegularizes) {
  EXPECT_EQ(UpdateOfWeights({.type = "SGD",
                             .regularizer = Regularizer{Regularizer::Kind::kL2, 0.1},
                             .gradient_clip = GradientClip{.low = -1, .high = 1}}),
            "Out=clip_1.tmp_0 <- clip(X=fc_0.w_0@GRAD, max: 1, min: -1) [optimize]\n"
            "Out=_generated_var_1 <- scale(X=fc_0.w_0, scale: 0.1) [optimize]\n"
            "Out=clip_1.tmp_0 <- sum(X=[clip_1.tmp_0, _generated_var_1]) [optimize]\n"
            "ParamOut=fc_0.w_0 <- sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, Grad=clip_1.tmp_0) [optimize]\n");
}

TEST_F(OptimizerTest, AParametersOwnRegularizerGoesFirst) {
  Variable* loss = FitALine();
  main_.global_block().Find("fc_0.w_0")->parameter->regularizer = Regularizer{Regularizer::Kind::kL2, 0.5};
  Optimizer sgd = *Optimizer::Make({.type = "SGD", .regularizer = Regularizer{Regularizer::Kind::kL2, 0.1}});
  Must(sgd.Minimize(builder_, loss));
  const auto& operations = main_.global_block().operations();
  EXPECT_EQ(OperationText(*operations[6]), "Out=_generated_var_0 <- scale(X=fc_0.b_0, scale: 0.1) [optimize]");
  EXPECT_EQ(OperationText(*operations[8]), "Out=_generated_var_1 <- scale(X=fc_0.w_0, scale: 0.5) [optimize]");
}

TEST_F(OptimizerTest, L1DecayAddsTheSign) {
  EXPECT_EQ(UpdateOfWeights({.type = "SGD", .regularizer = Regularizer{Regularizer::Kind::kL1, 0.1}}),
            "Out=_generated_var_1 <- sign(X=fc_0.w_0) [optimize]\n"
            "Out=_generated_var_1 <- scale(X=_generated_var_1, scale: 0.1) [optimize]\n"
            "Out=fc_0.w_0@GRAD <- sum(X=[fc_0.w_0@GRAD, _generated_var_1]) [optimize]\n"
            "ParamOut=fc_0.w_0 <- sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, Grad=fc_0.w_0@GRAD) [optimize]\n");
}

TEST_F(OptimizerTest, TheGlobalNormIsOneScaleForAll) {
  EXPECT_EQ(
      Minimize({.type = "SGD", .gradient_clip = GradientClip{.kind = GradientClip::Kind::kGlobalNorm, .limit = 5}}),
      "Out=square_0.tmp_0 <- square(X=fc_0.b_0@GRAD) [optimize]\n"
      "Out=reduce_sum_0.tmp_0 <- reduce_sum(X=square_0.tmp_0, reduce_all: true) [optimize]\n"
      "Out=square_1.tmp_0 <- square(X=fc_0.w_0@GRAD) [optimize]\n"
      "Out=reduce_sum_1.tmp_0 <- reduce_sum(X=square_1.tmp_0, reduce_all: true) [optimize]\n"
      "Out=sum_0.tmp_0 <- sum(X=[reduce_sum_0.tmp_0, reduce_sum_1.tmp_0]) [optimize]\n"
      "Out=sqrt_0.tmp_0 <- sqrt(X=sum_0.tmp_0) [optimize]\n"
      "Out=fill_constant_0.tmp_0 <- fill_constant(shape: [1], value: 5) [optimize]\n"
      "Out=elementwise_max_0.tmp_0 <- elementwise_max(X=fill_constant_0.tmp_0, Y=sqrt_0.tmp_0) [optimize]\n"
      "Out=elementwise_div_0.tmp_0 <- elementwise_div(X=fill_constant_0.tmp_0, Y=elementwise_max_0.tmp_0) "
      "[optimize]\n"
      "Out=elementwise_mul_0.tmp_0 <- elementwise_mul(X=fc_0.b_0@GRAD, Y=elementwise_div_0.tmp_0) [optimize]\n"
      "Out=elementwise_mul_1.tmp_0 <- elementwise_mul(X=fc_0.w_0@GRAD, Y=elementwise_div_0.tmp_0) [optimize]\n"
      "ParamOut=fc_0.b_0 <- sgd(Param=fc_0.b_0, LearningRate=learning_rate_0, Grad=elementwise_mul_0.tmp_0) "
      "[optimize]\n"
      "ParamOut=fc_0.w_0 <- sgd(Param=fc_0.w_0, LearningRate=learning_rate_0, Grad=elementwise_mul_1.tmp_0) "
      "[optimize]\n");
}

TEST_F(OptimizerTest, OneOptimizerTrainsSeveralProgramsAndEachOnce) {
  Optimizer adam = *Optimizer::Make({.type = "Adam"});
  Variable* loss = FitALine();
  Must(adam.Minimize(builder_, loss));
  EXPECT_EQ(adam.Minimize(builder_, loss).status().message(),
            "this optimizer trains 'fc_0.b_0' already; give each call of minimize an optimizer of its own");
  Program main, startup;
  NameGenerator names;
  ProgramBuilder builder(main, startup, names);
  Variable* x = Must(layers::Data(builder, "x", {.shape = {3}}));
  Must(adam.Minimize(builder, Must(layers::Mean(builder, Must(layers::Fc(builder, {x}, {.size = 2}))))));
  EXPECT_EQ(adam.learning_rate(main_)->name, "learning_rate_0");
  EXPECT_EQ(adam.learning_rate(main), main.global_block().Find("learning_rate_0"));
}

TEST_F(OptimizerTest, AParameterWithoutAGradientStays) {
  auto gradients = Must(AppendBackward(builder_, FitALine()));
  gradients[0].gradient = nullptr;
  Optimizer sgd = *Optimizer::Make({.type = "SGD"});
  EXPECT_EQ(Must(sgd.ApplyGradients(builder_, gradients)).operations.size(), 1u);
}

TEST_F(OptimizerTest, GroupsOfDifferentLimitsAreRefused) {
  Variable* loss = FitALine();
  for (const auto& [name, limit] : {std::pair("fc_0.w_0", 1.0), std::pair("fc_0.b_0", 2.0)})
    main_.global_block().Find(name)->parameter->gradient_clip =
        GradientClip{.kind = GradientClip::Kind::kGlobalNorm, .limit = limit};
  Optimizer sgd = *Optimizer::Make({.type = "SGD"});
  EXPECT_EQ(sgd.Minimize(builder_, loss).status().message(),
            "the gradients of the clip group 'default_group' have the limits 2 and 1; give all of a group the same, or "
            "another group_name");
}

TEST_F(OptimizerTest, UnknownNamesAreRefused) {
  EXPECT_EQ(
      Optimizer::Make({.type = "Sgdd"}).status().message(),
      "there is no optimizer 'Sgdd'; there are SGD, Adam, Adagrad, Momentum, RMSProp, Ftrl, DecayedAdagrad, Adamax, "
      "Adadelta, Lamb, LarsMomentum, Dpsgd");
  EXPECT_EQ(
      Optimizer::Make({.type = "Adamax", .arguments = {{"beta3", 0.5}}}).status().message(),
      "optimizer.Adamax has no argument 'beta3'; its arguments are learning_rate, regularization, grad_clip, beta1, "
      "beta2, epsilon");
  EXPECT_EQ(Optimizer::Make({.type = "Adam", .arguments = {{"beta1", std::string("x")}}}).status().message(),
            "optimizer.Adam: beta1 is \"x\"; want a number");
}

}  // namespace
}  // namespace regatta::program
