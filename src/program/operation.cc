#include "program/operation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace regatta::program {

std::string CallSite::Text() const {
  if (file.empty()) return base::Printable(layer);
  return base::Printable(absl::StrCat(layer.empty() ? "a layer" : layer, " (", file, ":", line, ")"));
}

std::string Operation::Place() const {
  const std::string where = site.Text();
  return where.empty() ? base::Printable(type) : absl::StrCat(where, ": ", base::Printable(type));
}

const Names& Operation::VariablesOf(const Slots& slots, std::string_view name) {
  static const Names kNone;
  for (const Slot& slot : slots)
    if (slot.name == name) return slot.variables;
  return kNone;
}

bool Operation::Mentions(const Slots& slots, std::string_view variable) {
  return std::ranges::any_of(
      slots, [&](const Slot& slot) { return std::ranges::find(slot.variables, variable) != slot.variables.end(); });
}

}  // namespace regatta::program
