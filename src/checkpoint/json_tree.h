// JSON that came from a file or from a peer, parsed within limits. Sorted by key, so that neither parsing nor looking
// up is quadratic, however many keys an object has. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "nlohmann/json.hpp"

namespace regatta::checkpoint {

using JsonTree = nlohmann::json;

struct JsonLimits {
  size_t bytes;
  int depth = 32;              // of lists and objects within each other: what walks a tree recurses
  size_t values = ~size_t{0};  // of any kind: one takes up to a hundred bytes of memory for two of text
};

// DATA_LOSS says what is wrong: too large, nested too deeply (with the byte), too many values, not JSON. Nothing
// throws. Of a key that comes twice the last value counts.
absl::StatusOr<JsonTree> ParseJson(std::string_view text, const JsonLimits& limits);

}  // namespace regatta::checkpoint
