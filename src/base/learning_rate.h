// The learning rate that a commit brings, for loops that own their schedule: finite, 0 or more, and bounded.
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/step.h"

namespace regatta::base {

inline constexpr float kMaxLearningRate = 1e6f;

// INVALID_ARGUMENT unless there is none, or it is from 0 to kMaxLearningRate.
absl::Status CheckLearningRate(std::optional<float> rate);
// The same of every rate of a step; the error names the table.
absl::Status CheckLearningRates(const StepGrads& grads);
// "the learning rate 0.1", or "no learning rate": for messages.
std::string DescribeLearningRate(std::optional<float> rate);

}  // namespace regatta::base
