#include "data/parser/parser.h"

#include <cstring>

#include "absl/strings/escaping.h"

namespace regatta::data {

void LineParser::Parse(std::string_view text, SampleBlock& block) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    const char* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
    if (newline == nullptr) newline = end;
    const char* line_end = newline > p && newline[-1] == '\r' ? newline - 1 : newline;
    const std::string_view line(p, static_cast<size_t>(line_end - p));
    const absl::Status status = IsBlank(line) ? absl::OkStatus() : ParseLine(line, block);
    if (!status.ok()) block.AddBadLine(block.lines, std::string(status.message()), line.data(), line.size());
    ++block.lines;
    p = newline + 1;
  }
}

bool IsBlank(std::string_view line) { return line.find_first_not_of(' ') == line.npos; }

std::string Quoted(std::string_view found) {
  constexpr size_t kShown = 40;
  if (found.size() <= kShown) return absl::StrCat("'", absl::CHexEscape(base::View(found)), "'");
  return absl::StrCat("'", absl::CHexEscape(base::View(found.substr(0, kShown))), "…' (", found.size(), " bytes)");
}

}  // namespace regatta::data
