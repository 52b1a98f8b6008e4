#include "base/learning_rate.h"

#include "absl/strings/str_cat.h"

namespace regatta::base {

absl::Status CheckLearningRate(std::optional<float> rate) {
  if (!rate.has_value() || (*rate >= 0 && *rate <= kMaxLearningRate)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the learning rate of a commit is a number from 0 to ", kMaxLearningRate, ", and this is ", *rate));
}

absl::Status CheckLearningRates(const StepGrads& grads) {
  for (const TableGrads& table : grads.tables)
    if (const absl::Status checked = CheckLearningRate(table.learning_rate); !checked.ok())
      return Annotate(checked, absl::StrCat("table ", table.keys.table));
  return Annotate(CheckLearningRate(grads.dense_learning_rate), "dense parameters");
}

std::string DescribeLearningRate(std::optional<float> rate) {
  return rate.has_value() ? absl::StrCat("the learning rate ", *rate) : "no learning rate";
}

}  // namespace regatta::base
