#include "cluster/variable.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace regatta::cluster {

Getenv ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::optional<std::string> ReadText(const Getenv& getenv, const std::string& name) {
  std::optional<std::string> value = getenv(name);
  if (!value.has_value()) return std::nullopt;
  absl::StripAsciiWhitespace(&*value);
  if (value->empty()) return std::nullopt;
  return value;
}

absl::StatusOr<int> ReadInt(const Getenv& getenv, const std::string& name, int min, int max, int fallback) {
  const std::optional<std::string> text = ReadText(getenv, name);
  if (!text.has_value()) return fallback;
  int value = 0;
  if (!absl::SimpleAtoi(*text, &value) || value < min || value > max)
    return absl::InvalidArgumentError(absl::StrCat(name, "=", *text, ": want a number from ", min, " to ", max));
  return value;
}

}  // namespace regatta::cluster
