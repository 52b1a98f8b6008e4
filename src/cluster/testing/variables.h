// An environment that a test makes up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/environment.h"

namespace regatta::cluster {

using Variables = std::map<std::string, std::string>;

inline Getenv From(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

}  // namespace regatta::cluster
