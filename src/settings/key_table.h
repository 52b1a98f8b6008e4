// Every key of the runner section: what it is, where it is kept and what it means. Parsing, the reference in
// docs/keys.md and the nearest-name search all read this one table.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "settings/runner_options.h"

namespace regatta::settings {

enum class KeyKind : uint8_t {
  kUsed,
  kWithServers,  // used by a worker with servers; alone, accepted with a warning
  kNoEffect,     // accepted with a warning that says why
  kRefused,      // accepted while it asks for nothing (False, empty); otherwise an error
};

enum class KeyType : uint8_t { kAny, kBool, kInt, kDouble, kString, kPath, kBytes, kChoice, kStringList };

// An enum member by its index in KeySpec::choices; choices from `available` on are known, and refused.
struct ChoiceField {
  size_t available = 0;
  void (*set)(RunnerOptions&, size_t) = nullptr;
  size_t (*get)(const RunnerOptions&) = nullptr;
};

using Field = std::variant<std::monostate, bool RunnerOptions::*, int64_t RunnerOptions::*, double RunnerOptions::*,
                           std::string RunnerOptions::*, std::vector<std::string> RunnerOptions::*, ChoiceField>;

struct KeySpec {
  std::string_view path;  // below "runner."
  KeyKind kind = KeyKind::kUsed;
  KeyType type = KeyType::kAny;
  Field field;
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::span<const std::string_view> choices;
  std::string_view doc;           // the meaning, or the reason why there is no effect
  std::string_view default_text;  // where the member's own default does not say it
};

std::span<const KeySpec> KeyTable();

// A key documented beside its parser: hyper_parameters and table_parameters.
struct KeyDoc {
  std::string_view path;
  std::string_view type;
  std::string_view default_text;
  std::string_view doc;
};

// docs/keys.md.
std::string KeysMarkdown();

}  // namespace regatta::settings
