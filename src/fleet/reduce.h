// Numbers of all workers made into one set: added up, or the least or largest of each.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/status.h"

namespace regatta::fleet {

enum class Reduce : uint8_t { kSum, kMin, kMax };

// What a worker sends. Number is double or int64_t.
template <typename Number>
std::string EncodeNumbers(std::span<const Number> numbers);

// numbers[i] = the i-th numbers of all payloads, in the order of ranks: every worker gets the same bits. A NaN anywhere
// makes a NaN. INVALID_ARGUMENT names the worker that brought another count or type; OUT_OF_RANGE a sum of integers
// that does not fit.
template <typename Number>
absl::Status ReduceNumbers(const std::map<int, std::string>& payloads, Reduce how, std::span<Number> numbers);

}  // namespace regatta::fleet
