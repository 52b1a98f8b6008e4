// The value of an operation's attribute, and an operation's attributes by name.
// Thread-safety: plain values and pure functions.
// Invariant: an attribute whose schema says `float` holds a double, one that says `int` an int64_t; Fluid's own int,
// long and float are narrower.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace regatta::program {

// A block of the same program: the body of a loop, a branch.
struct BlockIndex {
  int64_t value = 0;
  friend bool operator==(BlockIndex, BlockIndex) = default;
};

using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<bool>, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, BlockIndex, std::vector<BlockIndex>>;

// In the order of the variant's alternatives.
enum class AttributeType : uint8_t { kBool, kInt, kFloat, kString, kBools, kInts, kFloats, kStrings, kBlock, kBlocks };

inline AttributeType TypeOf(const Attribute& value) { return static_cast<AttributeType>(value.index()); }
// "int", "floats", …; the words of the schema tables.
const char* AttributeTypeName(AttributeType type);
std::optional<AttributeType> AttributeTypeNamed(std::string_view name);

// "true", "3", "0.5", "\"SUM\"", "[1, 2]", "block 1"; strings with escapes, so that no text forges a line.
std::string AttributeText(const Attribute& value);

// The value as `type`: an int where a float is meant and the like; nothing if that would change it.
std::optional<Attribute> ConvertTo(const Attribute& value, AttributeType type);

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> values) : values_(values) {}

  void Set(std::string name, Attribute value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void Remove(std::string_view name) {
    if (const auto found = values_.find(name); found != values_.end()) values_.erase(found);
  }
  // nullptr if there is none.
  const Attribute* Find(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }

  // The value, or false, 0, "" or an empty list if the attribute is absent or of another type: a checked operation has
  // every attribute of its schema that has a default.
  bool Bool(std::string_view name) const { return Get<bool>(name); }
  int64_t Int(std::string_view name) const { return Get<int64_t>(name); }
  double Float(std::string_view name) const { return Get<double>(name); }
  const std::string& String(std::string_view name) const { return Get<std::string>(name); }
  const std::vector<int64_t>& Ints(std::string_view name) const { return Get<std::vector<int64_t>>(name); }
  const std::vector<double>& Floats(std::string_view name) const { return Get<std::vector<double>>(name); }
  const std::vector<std::string>& Strings(std::string_view name) const { return Get<std::vector<std::string>>(name); }

  // In the order of the names.
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  size_t size() const { return values_.size(); }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  template <typename T>
  const T& Get(std::string_view name) const {
    static const T kNone{};
    const Attribute* value = Find(name);
    const T* typed = value ? std::get_if<T>(value) : nullptr;
    return typed ? *typed : kNone;
  }

  std::map<std::string, Attribute, std::less<>> values_;
};

}  // namespace regatta::program
