// Numbers of all workers made into one set: added up, or the least or largest of each.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "base/status.h"
#include "run/rounds.pb.h"

namespace regatta::fleet {

enum class Reduce : uint8_t { kSum, kMin, kMax };

// What a worker sends.
run::Numbers NumbersOf(std::span<const double> numbers);
run::Numbers NumbersOf(std::span<const int64_t> numbers);

// numbers[i] = the i-th numbers of all messages, in the order of ranks: every worker gets the same bits. A NaN anywhere
// makes a NaN. Number is double or int64_t. INVALID_ARGUMENT names the worker that brought another count or type;
// OUT_OF_RANGE a sum of integers that does not fit.
template <typename Number>
absl::Status ReduceNumbers(const std::map<int, run::Numbers>& messages, Reduce how, std::span<Number> numbers);

}  // namespace regatta::fleet
