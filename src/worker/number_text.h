// Whole numbers as the text in which workers tell them to each other.
// Thread-safety: all functions are concurrent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regatta::worker {

std::string FormatNumbers(std::span<const uint64_t> numbers);
// So many of them, as the first worker told them.
absl::StatusOr<std::vector<uint64_t>> ParseNumbers(std::string_view text, size_t count);

}  // namespace regatta::worker
