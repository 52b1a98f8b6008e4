// One environment variable.
// Thread-safety: pure functions of what Getenv returns.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace regatta::cluster {

using Getenv = std::function<std::optional<std::string>(const std::string&)>;

// The environment of this process.
Getenv ProcessEnvironment();

// A variable without the blanks around it; an empty one is an unset one.
std::optional<std::string> ReadText(const Getenv& getenv, const std::string& name);
// An integer variable in [min, max], or `fallback` where it is not set. The error names it.
absl::StatusOr<int> ReadInt(const Getenv& getenv, const std::string& name, int min, int max, int fallback);

}  // namespace regatta::cluster
