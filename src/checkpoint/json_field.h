// Typed access to the fields of a JSON object, with errors that name the field. Used for files that may be damaged:
// nothing here throws.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/json_tree.h"

namespace regatta::checkpoint {

using Json = nlohmann::ordered_json;  // to be written: fields stay in their order

inline absl::Status WrongField(const std::string& where, const std::string& want) {
  return absl::DataLossError(absl::StrCat(where, ": want ", want));
}

inline absl::Status FromJson(const JsonTree& json, const std::string& where, std::string& out) {
  if (!json.is_string()) return WrongField(where, "a string");
  out = json.get_ref<const std::string&>();
  return absl::OkStatus();
}
inline absl::Status FromJson(const JsonTree& json, const std::string& where, bool& out) {
  if (!json.is_boolean()) return WrongField(where, "true or false");
  out = json.get<bool>();
  return absl::OkStatus();
}
inline absl::Status FromJson(const JsonTree& json, const std::string& where, double& out) {
  if (!json.is_number()) return WrongField(where, "a number");
  out = json.get<double>();
  return absl::OkStatus();
}
inline absl::Status FromJson(const JsonTree& json, const std::string& where, uint64_t& out) {
  if (!json.is_number_unsigned()) return WrongField(where, "a number from 0 to 2^64-1");
  out = json.get<uint64_t>();
  return absl::OkStatus();
}
template <typename T>
absl::Status SmallFromJson(const JsonTree& json, const std::string& where, T& out) {
  if (!json.is_number_integer()) return WrongField(where, "a whole number");
  constexpr int64_t kMax = std::numeric_limits<T>::max();
  const bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= static_cast<uint64_t>(kMax)
                                              : json.get<int64_t>() >= std::numeric_limits<T>::min();
  if (!fits) return WrongField(where, absl::StrCat("a number up to ", kMax));
  out = static_cast<T>(json.get<int64_t>());
  return absl::OkStatus();
}
inline absl::Status FromJson(const JsonTree& json, const std::string& where, int& out) {
  return SmallFromJson(json, where, out);
}
inline absl::Status FromJson(const JsonTree& json, const std::string& where, int64_t& out) {
  return SmallFromJson(json, where, out);
}
inline absl::Status FromJson(const JsonTree& json, const std::string& where, uint32_t& out) {
  return SmallFromJson(json, where, out);
}
template <typename T>
absl::Status FromJson(const JsonTree& json, const std::string& where, std::vector<T>& out) {
  if (!json.is_array()) return WrongField(where, "a list");
  out.clear();
  for (const JsonTree& item : json) {
    T value{};
    RETURN_IF_ERROR(FromJson(item, absl::StrCat(where, "[", out.size(), "]"), value));
    out.push_back(std::move(value));
  }
  return absl::OkStatus();
}

// `out` keeps its value where the field is missing.
template <typename T>
absl::Status OptionalField(const JsonTree& object, const char* name, const std::string& where, T& out) {
  if (!object.is_object()) return WrongField(where, "an object");
  const auto it = object.find(name);
  if (it == object.end()) return absl::OkStatus();
  return FromJson(*it, absl::StrCat(where, ".", name), out);
}
template <typename T>
absl::Status RequiredField(const JsonTree& object, const char* name, const std::string& where, T& out) {
  if (!object.is_object()) return WrongField(where, "an object");
  if (!object.contains(name)) return absl::DataLossError(absl::StrCat(where, ".", name, " is missing"));
  return OptionalField(object, name, where, out);
}
// The field itself, which must be of type `type`; nullptr is never returned.
inline absl::StatusOr<const JsonTree*> RequiredChild(const JsonTree& object, const char* name, const std::string& where,
                                                     JsonTree::value_t type) {
  if (!object.is_object()) return WrongField(where, "an object");
  const auto it = object.find(name);
  if (it == object.end()) return absl::DataLossError(absl::StrCat(where, ".", name, " is missing"));
  if (it->type() != type)
    return WrongField(absl::StrCat(where, ".", name), type == JsonTree::value_t::object ? "an object" : "a list");
  return &*it;
}

inline std::string HexOf(uint64_t value, int digits) {
  std::string hex(digits, '0');
  for (int i = digits - 1; i >= 0; --i, value >>= 4) hex[i] = "0123456789abcdef"[value & 15];
  return hex;
}
// A string of hexadecimal digits.
template <typename T>
absl::Status RequiredHex(const JsonTree& object, const char* name, const std::string& where, T& out) {
  std::string text;
  RETURN_IF_ERROR(RequiredField(object, name, where, text));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != sizeof(T) * 2)
    return WrongField(absl::StrCat(where, ".", name), absl::StrCat(sizeof(T) * 2, " hexadecimal digits"));
  return absl::OkStatus();
}

}  // namespace regatta::checkpoint
