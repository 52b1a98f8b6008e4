// A parser turns lines of one input format into samples. docs/format/input.md describes the formats.
// Thread-safety: a parser belongs to one thread.
// Invariant: a bad line leaves the block's columns as they were and becomes one entry of its bad lines.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "data/batch.h"
#include "data/parser/number.h"
#include "data/sample_block.h"

namespace regatta::data {

class Parser {
 public:
  virtual ~Parser() = default;

  // Appends the samples of `text`: whole lines, the last one ended by '\n' too, with kPadding readable bytes behind.
  virtual void Parse(std::string_view text, SampleBlock& block) = 0;
};

// The part that the formats without a fast path of their own share: splits text into lines.
class LineParser : public Parser {
 public:
  void Parse(std::string_view text, SampleBlock& block) final;

 private:
  // `line` comes without its line ending. An error says what was expected and what was found.
  virtual absl::Status ParseLine(std::string_view line, SampleBlock& block) = 0;
};

// Whether a line without its ending holds nothing, or spaces only: it is skipped, and is no bad line.
bool IsBlank(std::string_view line);

// `found` for a message: cut where it is long, unprintable bytes escaped.
std::string Quoted(std::string_view found);

}  // namespace regatta::data
