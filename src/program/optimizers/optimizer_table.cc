#include "program/optimizers/optimizer_table.h"

#include "absl/strings/str_join.h"
#include "base/printable.h"

namespace regatta::program {

namespace {

constexpr auto kOne = AccumulatorRow::Extent::kOne;
constexpr auto kAsParameter = AccumulatorRow::Extent::kAsParameter;

constexpr AccumulatorRow kVelocity[] = {{"velocity", "Velocity", "VelocityOut"}};
constexpr AccumulatorRow kMoment[] = {{"moment", "Moment", "MomentOut"}};
constexpr AccumulatorRow kAdagradMoment[] = {
    {"moment", "Moment", "MomentOut", kAsParameter, "initial_accumulator_value"}};
constexpr AccumulatorRow kAdam[] = {
    {"moment1", "Moment1", "Moment1Out"},
    {"moment2", "Moment2", "Moment2Out"},
    {"beta1_pow_acc", "Beta1Pow", "Beta1PowOut", kOne, "beta1"},
    {"beta2_pow_acc", "Beta2Pow", "Beta2PowOut", kOne, "beta2"},
};
constexpr AccumulatorRow kAdamax[] = {
    {"moment", "Moment", "MomentOut"},
    {"inf_norm", "InfNorm", "InfNormOut"},
    {"beta1_pow_acc", "Beta1Pow", "", kOne, "beta1", "beta1"},
};
// PaddlePaddle 1.8 never advances the powers of lamb, so its correction of the first steps' bias stays for ever.
constexpr AccumulatorRow kLamb[] = {
    {"moment1", "Moment1", "Moment1Out"},
    {"moment2", "Moment2", "Moment2Out"},
    {"beta1_pow_acc", "Beta1Pow", "", kOne, "beta1", "beta1"},
    {"beta2_pow_acc", "Beta2Pow", "", kOne, "beta2", "beta2"},
};
constexpr AccumulatorRow kAdadelta[] = {
    {"_avg_squared_grad", "AvgSquaredGrad", "AvgSquaredGradOut"},
    {"_avg_squared_update", "AvgSquaredUpdate", "AvgSquaredUpdateOut"},
};
constexpr AccumulatorRow kRmsprop[] = {
    {"momentum", "Moment", "MomentOut"},
    {"mean_square", "MeanSquare", "MeanSquareOut"},
    {"mean_grad", "MeanGrad", "MeanGradOut"},
};
constexpr AccumulatorRow kFtrl[] = {
    {"squared", "SquaredAccumulator", "SquaredAccumOut"},
    {"linear", "LinearAccumulator", "LinearAccumOut"},
};

constexpr ArgumentRow kMomentumArguments[] = {{"momentum", "mu", 0, true}, {"use_nesterov", "use_nesterov"}};
constexpr ArgumentRow kLarsArguments[] = {{"momentum", "mu", 0, true},
                                          {"lars_coeff", "lars_coeff", 0.001},
                                          {"lars_weight_decay", "lars_weight_decay", 0.0005}};
constexpr ArgumentRow kAdagradArguments[] = {{"epsilon", "epsilon", 1e-6}, {"initial_accumulator_value", ""}};
constexpr ArgumentRow kDecayedAdagradArguments[] = {{"decay", "decay", 0.95}, {"epsilon", "epsilon", 1e-6}};
constexpr ArgumentRow kAdadeltaArguments[] = {{"epsilon", "epsilon", 1e-6}, {"rho", "rho", 0.95}};
constexpr ArgumentRow kAdamArguments[] = {
    {"beta1", "beta1", 0.9}, {"beta2", "beta2", 0.999}, {"epsilon", "epsilon", 1e-8}, {"lazy_mode", "lazy_mode"}};
constexpr ArgumentRow kAdamaxArguments[] = {
    {"beta1", "beta1", 0.9}, {"beta2", "beta2", 0.999}, {"epsilon", "epsilon", 1e-8}};
constexpr ArgumentRow kLambArguments[] = {{"lamb_weight_decay", "weight_decay", 0.01},
                                          {"beta1", "beta1", 0.9},
                                          {"beta2", "beta2", 0.999},
                                          {"epsilon", "epsilon", 1e-6}};
constexpr ArgumentRow kRmspropArguments[] = {
    {"rho", "decay", 0.95}, {"epsilon", "epsilon", 1e-6}, {"momentum", "momentum"}, {"centered", "centered"}};
// PaddlePaddle 1.8 gives the operator l1 in the place of l2.
constexpr ArgumentRow kFtrlArguments[] = {{"l1", "l1"}, {"l2", "l2"}, {"lr_power", "lr_power", -0.5}};
constexpr ArgumentRow kDpsgdArguments[] = {
    {"clip", "clip", 0.9}, {"batch_size", "batch_size", 0.999}, {"sigma", "sigma", 1e-8}, {"seed", "seed"}};

constexpr OptimizerRow kOptimizers[] = {
    {"SGD", "sgd", {}, {}},
    {"Adam", "adam", kAdam, kAdamArguments},
    {"Adagrad", "adagrad", kAdagradMoment, kAdagradArguments},
    {"Momentum", "momentum", kVelocity, kMomentumArguments},
    {"RMSProp", "rmsprop", kRmsprop, kRmspropArguments},
    {"Ftrl", "ftrl", kFtrl, kFtrlArguments},
    {"DecayedAdagrad", "decayed_adagrad", kMoment, kDecayedAdagradArguments},
    {"Adamax", "adamax", kAdamax, kAdamaxArguments},
    {"Adadelta", "adadelta", kAdadelta, kAdadeltaArguments},
    {"Lamb", "lamb", kLamb, kLambArguments},
    {"LarsMomentum", "lars_momentum", kVelocity, kLarsArguments},
    {"Dpsgd", "dpsgd", {}, kDpsgdArguments},
};

}  // namespace

std::span<const OptimizerRow> AllOptimizers() { return kOptimizers; }

absl::StatusOr<const OptimizerRow*> OptimizerNamed(std::string_view name) {
  std::string_view plain = name;
  if (plain.ends_with("Optimizer")) plain.remove_suffix(9);
  for (const OptimizerRow& row : kOptimizers)
    if (row.name == plain) return &row;
  const auto append = [](std::string* out, const OptimizerRow& row) { out->append(row.name); };
  return absl::InvalidArgumentError(absl::StrCat("there is no optimizer '", base::Printable(name), "'; there are ",
                                                 absl::StrJoin(kOptimizers, ", ", append)));
}

}  // namespace regatta::program
