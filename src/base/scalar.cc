#include "base/scalar.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace regatta::base {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// Drops underscores that stand between two digits; any other stays and spoils the number.
std::string WithoutSeparators(std::string_view text) {
  const auto digit = [&](size_t i) { return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])); };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || !digit(i - 1) || !digit(i + 1)) out += text[i];
  return out;
}

template <typename T, typename... Args>
std::optional<T> FromChars(std::string_view text, Args... args) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, args...);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> ParseInt(std::string_view raw) {
  const std::string text = WithoutSeparators(Trim(raw));
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    if (digits.starts_with('-')) return std::nullopt;
    return FromChars<int64_t>(digits, 16);
  }
  if (text.starts_with("+-")) return std::nullopt;
  if (const auto value = FromChars<int64_t>(digits)) return value;
  const std::optional<double> number = ParseDouble(text);
  // Above 2^53 a float no longer names one integer.
  if (!number || std::trunc(*number) != *number || std::abs(*number) > 0x1p53) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> ParseDouble(std::string_view raw) {
  const std::string text = WithoutSeparators(Trim(raw));
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (text.starts_with("+-")) return std::nullopt;
  const auto value = FromChars<double>(digits);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<bool> ParseBool(std::string_view raw) {
  const std::string text = Lower(Trim(raw));
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  return std::nullopt;
}

std::optional<int64_t> ParseBytes(std::string_view raw) {
  std::string text = Lower(Trim(raw));
  int shift = 0;
  if (text.ends_with("ib")) {
    text.resize(text.size() - 2);
  } else if (text.ends_with("b")) {
    text.resize(text.size() - 1);
  }
  constexpr std::string_view kUnits = "kmgt";
  if (!text.empty()) {
    if (const size_t unit = kUnits.find(text.back()); unit != std::string_view::npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      text.pop_back();
    }
  }
  const std::optional<double> number = ParseDouble(text);
  if (!number) return std::nullopt;
  const double bytes = std::ldexp(*number, shift);
  if (!(std::abs(bytes) <= 0x1p62)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string NumberText(double value) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

}  // namespace regatta::base
