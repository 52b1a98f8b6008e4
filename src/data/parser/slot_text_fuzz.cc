// Slot text against a parser written as plainly as possible: the same lines taken and refused, the same values.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "data/parser/any_bytes.h"
#include "data/parser/slot_text.h"

namespace regatta::data {
namespace {

struct Sample {
  std::vector<float> labels;
  std::vector<float> dense;
  std::vector<uint64_t> slots[2];
};

std::vector<std::string> Split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find_first_of(separators, at);
    if (end == text.npos) end = text.size();
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::optional<uint64_t> PlainId(const std::string& text) {
  unsigned __int128 value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > UINT64_MAX) return std::nullopt;
  }
  return static_cast<uint64_t>(value);
}

std::optional<float> PlainDecimal(const std::string& text) {
  // [+-] digits [. digits] [e [+-] digits], a digit in front of the exponent, then strtod.
  size_t i = 0, digits = 0;
  auto skip = [&] {
    size_t n = 0;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i, ++n;
    return n;
  };
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
  digits += skip();
  if (i < text.size() && text[i] == '.') ++i, digits += skip();
  if (digits == 0) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (skip() == 0) return std::nullopt;
  }
  if (i != text.size()) return std::nullopt;
  const float value = static_cast<float>(std::strtod(text.c_str(), nullptr));
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// `click` is from 0 to 1; if there are two labels, `price` is any number.
std::optional<Sample> PlainSample(std::string line, size_t want_labels) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  Sample sample;
  std::vector<float> clicks, prices;
  for (const std::string& token : Split(line, " \t")) {
    const size_t colon = token.find(':');
    if (colon == token.npos || colon == 0 || colon + 1 == token.size()) return std::nullopt;
    const std::string name = token.substr(0, colon), value = token.substr(colon + 1);
    if (name == "1" || name == "22") {
      const auto id = PlainId(value);
      if (!id) return std::nullopt;
      sample.slots[name == "22"].push_back(*id);
    } else if ((name == "click" && want_labels > 0) || (name == "price" && want_labels > 1) ||
               name == "dense_feature") {
      const auto number = PlainDecimal(value);
      if (!number) return std::nullopt;
      if (name == "click" && !(*number >= 0 && *number <= 1)) return std::nullopt;
      (name == "click" ? clicks : name == "price" ? prices : sample.dense).push_back(*number);
    }
  }
  if (clicks.size() != (want_labels > 0) || prices.size() != (want_labels > 1) || sample.dense.size() != 2)
    return std::nullopt;
  sample.labels = clicks;
  sample.labels.insert(sample.labels.end(), prices.begin(), prices.end());
  return sample;
}

void Check(bool same, const char* what, const std::string& line) {
  if (same) return;
  std::fprintf(stderr, "%s differs: '%s'\n", what, line.c_str());
  std::abort();
}

bool SameBits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void Compare(const std::vector<std::string>& lines, const SampleBlock& block, size_t labels) {
  size_t sample = 0, bad = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (HoldsNothing(lines[i])) continue;
    const std::optional<Sample> want = PlainSample(lines[i], labels);
    if (!want) {
      ++bad;
      continue;
    }
    Check(sample < static_cast<size_t>(block.size), "taking", lines[i]);
    for (size_t j = 0; j < labels; ++j)
      Check(SameBits(block.labels[labels * sample + j], want->labels[j]), "label", lines[i]);
    for (size_t j = 0; j < 2; ++j) {
      Check(SameBits(block.dense[2 * sample + j], want->dense[j]), "dense", lines[i]);
      const size_t bag = 2 * sample + j;
      const std::vector<uint64_t> got(block.keys.data() + block.BagBegin(bag), block.keys.data() + block.ends[bag]);
      Check(got == want->slots[j], "ids", lines[i]);
    }
    ++sample;
  }
  Check(sample == static_cast<size_t>(block.size), "number of samples", "");
  Check(bad == block.bad_lines && block.lines == lines.size(), "number of bad lines", "");
}

}  // namespace
}  // namespace regatta::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta::data;  // NOLINT(build/namespaces)
  Schema schema;
  schema.sparse_slots = {"1", "22"};
  schema.dense_dim = 2;
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.empty() || text.back() != '\n') text += '\n';
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  const std::string padded = text + text + std::string(kPadding, '5');
  const std::string_view view(padded);
  for (const size_t labels : {1, 2, 0}) {
    if (labels == 2) schema.labels = {"click", "price"}, schema.real_labels = {"price"};
    schema.label_use = labels == 0 ? LabelUse::kAbsent : LabelUse::kRead;
    auto parser = MakeSlotTextParser(schema).value();
    // The text twice: the second time the plan of the first is there.
    SampleBlock once;
    parser->Parse(view.substr(text.size(), text.size()), once);
    Compare(lines, once, labels);
    SampleBlock again;
    parser->Parse(view.substr(0, text.size()), again);
    Compare(lines, again, labels);
  }
  return 0;
}
