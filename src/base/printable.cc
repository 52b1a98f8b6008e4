#include "base/printable.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace regatta::base {
namespace {

enum class LineEnds : uint8_t { kEscape, kKeep };

// One character of UTF-8. bytes == 0: the first byte begins none.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

Character Decode(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t code = first & (0x7fU >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // a shorter form would do for less
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || surrogate) return {};
  return {code, bytes};
}

bool IsHidden(uint32_t code) {
  constexpr struct {
    uint32_t first, last;
  } kHidden[] = {{0x00, 0x1f},         // C0
                 {0x7f, 0x9f},         // DEL, C1
                 {0x61c, 0x61c},       // direction of text
                 {0x200e, 0x200f},     // direction of text
                 {0x2028, 0x202e},     // ends of lines and paragraphs, direction of text
                 {0x2066, 0x2069},     // direction of text
                 {0xfeff, 0xfeff},     // byte order mark
                 {0xfff9, 0xfffb},     // annotations
                 {0xe0000, 0xe007f}};  // tags
  for (const auto& range : kHidden)
    if (code >= range.first && code <= range.last) return true;
  return false;
}

void AppendEscape(uint32_t code, std::string& out) {
  switch (code) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  char text[16];
  const char* const format = code < 0x80 ? "\\x%02x" : code <= 0xffff ? "\\u%04x" : "\\U%08x";
  out.append(text, static_cast<size_t>(std::snprintf(text, sizeof text, format, code)));
}

std::string Escape(std::string_view text, LineEnds ends) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = Decode(text);
    if (c.bytes == 0) {
      char byte[8];
      out.append(byte, static_cast<size_t>(std::snprintf(byte, sizeof byte, "\\x%02x", static_cast<uint8_t>(text[0]))));
      text.remove_prefix(1);
      continue;
    }
    if (IsHidden(c.code) && !(c.code == '\n' && ends == LineEnds::kKeep)) {
      AppendEscape(c.code, out);
    } else {
      out.append(text.substr(0, c.bytes));
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Escape(text, LineEnds::kEscape); }

std::string PrintableLines(std::string_view text) { return Escape(text, LineEnds::kKeep); }

}  // namespace regatta::base
