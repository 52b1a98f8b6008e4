#include "data/parser/format.h"

#include <utility>

namespace regatta::data {

const FormatEntry* FindFormat(std::string_view name) {
  for (const FormatEntry& format : kFormats)
    if (name == format.name || name == format.reader) return &format;
  return nullptr;
}

absl::StatusOr<const FormatEntry*> DetectFormat(std::string_view text, const Schema& schema) {
  const FormatEntry* best = nullptr;
  std::pair<int, size_t> best_score;
  std::string reasons;
  for (const FormatEntry& format : kFormats) {
    auto parser = format.make(schema);
    SampleBlock block;
    if (parser.ok()) (*parser)->Parse(text, block);
    // Without labels any line of names and numbers is a sample of slot text: the ids that it gives decide then.
    const std::pair<int, size_t> score(block.size, schema.label_dim() > 0 ? 0 : block.keys.size());
    if (score > best_score) {
      best = &format;
      best_score = score;
    }
    if (block.size == 0)
      absl::StrAppend(&reasons, "\n  ", base::View(format.name), ": ",
                      !parser.ok()        ? std::string(parser.status().message())
                      : block.bad.empty() ? "no line"
                                          : block.bad[0].reason);
  }
  if (best == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("no format takes the first lines; of the first one they say:", reasons));
  return best;
}

}  // namespace regatta::data
