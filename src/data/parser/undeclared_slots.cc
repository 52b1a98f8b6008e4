#include "data/parser/undeclared_slots.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "data/parser/field_map.h"

namespace regatta::data {

std::vector<std::string> UndeclaredSlots(std::string_view text, const Schema& schema, NameSide side) {
  constexpr size_t kMost = 1000, kLongest = 40;
  const auto fields = FieldMap::Make(schema);
  if (!fields.ok()) return {};
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> seen;
  for (size_t at = 0; at < text.size() && names.size() < kMost;) {
    const size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    const std::string_view token = text.substr(at, end - at);
    at = end + 1;
    const size_t colon = token.find(':');
    if (colon == token.npos) continue;
    const std::string_view name = side == NameSide::kBeforeColon ? token.substr(0, colon) : token.substr(colon + 1);
    if (name.empty() || fields->Find(name).field != Field::kIgnored) continue;
    std::string shown(name.substr(0, kLongest));
    if (seen.insert(shown).second) names.push_back(std::move(shown));
  }
  return names;
}

}  // namespace regatta::data
