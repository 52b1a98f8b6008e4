// The slots that lines of `name:value` or `value:name` tokens have and a schema does not declare, for messages.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch.h"

namespace regatta::data {

enum class NameSide : uint8_t { kBeforeColon, kBehindColon };

// In the order in which they first occur; at most 1000.
std::vector<std::string> UndeclaredSlots(std::string_view text, const Schema& schema, NameSide side);

}  // namespace regatta::data
