// YAML text as a tree with the place of every value. A front on yaml-cpp that bounds what it accepts: no anchors,
// aliases or tags (their expansion is unbounded), one document, text in UTF-8, every key once.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regatta::base {

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  enum class Quoting { kPlain, kQuoted };  // a block scalar (|, >) counts as quoted

  Kind kind = Kind::kNull;
  Quoting quoting = Quoting::kPlain;
  std::string text;  // of a scalar
  int line = 0;      // from 1
  int column = 0;
  bool flow = false;              // a list or map written in brackets
  std::vector<std::string> keys;  // of a map, one for each item
  std::vector<int> key_lines;     // of a map: where each key stands
  std::vector<YamlNode> items;    // of a list or map
};

struct YamlLimits {
  size_t max_bytes = size_t{1} << 20;
  int max_depth = 32;
};

// Errors read "name:line:column: what is wrong". An empty text is a null node.
absl::StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view name, const YamlLimits& limits = {});

// `text` as a JSON string, quotes included.
std::string QuoteJson(std::string_view text);

// The node on one line as JSON; a scalar that is no plain number keeps its spelling in a string.
std::string ToJsonText(const YamlNode& node);

}  // namespace regatta::base
