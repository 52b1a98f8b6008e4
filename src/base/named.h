// Enum values with the names that configurations and the wire have for them: a table of Named, read both ways.
// Thread-safety: plain values and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace regatta::base {

template <typename Value>
struct Named {
  std::string_view name;  // a literal
  Value value;
};

template <typename Value, size_t kCount>
constexpr const char* NameIn(const Named<Value> (&table)[kCount], Value value) {
  for (const Named<Value>& entry : table)
    if (entry.value == value) return entry.name.data();
  return "";
}

// Nothing if no entry has the name.
template <typename Value, size_t kCount>
constexpr std::optional<Value> ValueIn(const Named<Value> (&table)[kCount], std::string_view name) {
  for (const Named<Value>& entry : table)
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

// The table's names in its order, behind those of `first`.
template <typename Value, size_t kCount, size_t kFirst = 0>
constexpr std::array<std::string_view, kFirst + kCount> NamesIn(
    const Named<Value> (&table)[kCount], const std::array<std::string_view, kFirst>& first = {}) {
  std::array<std::string_view, kFirst + kCount> names{};
  for (size_t i = 0; i < kFirst; ++i) names[i] = first[i];
  for (size_t i = 0; i < kCount; ++i) names[kFirst + i] = table[i].name;
  return names;
}

// Whether entry i has the enum value i.
template <typename Value, size_t kCount>
constexpr bool InOrder(const Named<Value> (&table)[kCount]) {
  for (size_t i = 0; i < kCount; ++i)
    if (static_cast<size_t>(table[i].value) != i) return false;
  return true;
}

}  // namespace regatta::base
