#include "program/attribute.h"

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "base/named.h"
#include "base/scalar.h"
#include "base/status.h"

namespace regatta::program {

namespace {

constexpr base::Named<AttributeType> kAttributeTypes[] = {
    {"bool", AttributeType::kBool},     {"int", AttributeType::kInt},         {"float", AttributeType::kFloat},
    {"string", AttributeType::kString}, {"bools", AttributeType::kBools},     {"ints", AttributeType::kInts},
    {"floats", AttributeType::kFloats}, {"strings", AttributeType::kStrings}, {"block", AttributeType::kBlock},
    {"blocks", AttributeType::kBlocks},
};
static_assert(base::InOrder(kAttributeTypes));
static_assert(std::variant_size_v<Attribute> == std::size(kAttributeTypes));

std::string ValueText(bool value) { return value ? "true" : "false"; }
std::string ValueText(int64_t value) { return absl::StrCat(value); }
std::string ValueText(double value) { return base::NumberText(value); }
std::string ValueText(const std::string& value) { return absl::StrCat("\"", absl::Utf8SafeCEscape(value), "\""); }
std::string ValueText(BlockIndex value) { return absl::StrCat("block ", value.value); }

template <typename T>
std::string ValueText(const std::vector<T>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", ", [](std::string* out, const T& v) { out->append(ValueText(v)); }),
                      "]");
}

// Whole numbers only.
std::optional<int64_t> AsInt(double value) {
  constexpr double kLimit = 9007199254740992.0;  // 2^53: beyond it a double skips integers
  if (!(std::abs(value) <= kLimit) || value != std::floor(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// An empty list has the type that is asked for.
template <typename From>
std::optional<Attribute> ConvertList(const std::vector<From>& values, AttributeType type) {
  const bool numbers = !std::is_same_v<From, std::string> && !std::is_same_v<From, BlockIndex>;
  if (values.empty() || numbers) {
    if (type == AttributeType::kFloats) {
      std::vector<double> list;
      if constexpr (numbers) list.assign(values.begin(), values.end());
      return list;
    }
    if (type == AttributeType::kInts && (values.empty() || std::is_same_v<From, bool>)) {
      std::vector<int64_t> list;
      if constexpr (numbers) list.assign(values.begin(), values.end());
      return list;
    }
  }
  if (!values.empty()) return std::nullopt;
  if (type == AttributeType::kStrings) return std::vector<std::string>();
  if (type == AttributeType::kBools) return std::vector<bool>();
  if (type == AttributeType::kBlocks) return std::vector<BlockIndex>();
  return std::nullopt;
}

struct Converter {
  AttributeType type;

  std::optional<Attribute> operator()(bool value) const { return (*this)(static_cast<int64_t>(value)); }
  std::optional<Attribute> operator()(int64_t value) const {
    if (type == AttributeType::kInt) return value;
    if (type == AttributeType::kFloat) return static_cast<double>(value);
    if (type == AttributeType::kBool && (value == 0 || value == 1)) return value == 1;
    if (type == AttributeType::kInts) return std::vector<int64_t>{value};
    return std::nullopt;
  }
  std::optional<Attribute> operator()(double value) const {
    const std::optional<int64_t> whole = AsInt(value);
    if (type == AttributeType::kInt && whole) return *whole;
    if (type == AttributeType::kFloats) return std::vector<double>{value};
    return std::nullopt;
  }
  std::optional<Attribute> operator()(const std::string& value) const {
    if (type == AttributeType::kStrings) return std::vector<std::string>{value};
    return std::nullopt;
  }
  std::optional<Attribute> operator()(BlockIndex) const { return std::nullopt; }
  template <typename T>
  std::optional<Attribute> operator()(const std::vector<T>& values) const {
    return ConvertList(values, type);
  }
};

}  // namespace

const char* AttributeTypeName(AttributeType type) { return base::NameIn(kAttributeTypes, type); }
std::optional<AttributeType> AttributeTypeNamed(std::string_view name) { return base::ValueIn(kAttributeTypes, name); }

std::string AttributeText(const Attribute& value) {
  return std::visit([](const auto& v) { return ValueText(v); }, value);
}

std::optional<Attribute> ConvertTo(const Attribute& value, AttributeType type) {
  if (TypeOf(value) == type) return value;
  return std::visit(Converter{type}, value);
}

}  // namespace regatta::program
