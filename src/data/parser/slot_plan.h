// The sequence of slots of one line of slot text, compiled, so that lines like it are parsed without a lookup.
// Thread-safety: Follow is const; the rest belongs to one parser.
// Invariant: a line that follows the plan is one that the plain path takes, with the same values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/key.h"
#include "data/parser/field_map.h"
#include "data/parser/number.h"
#include "data/parser/separator_index.h"

namespace regatta::data {

class SlotPlan {
 public:
  // What a line's values are written to; each has room for what the plan holds.
  struct Targets {
    base::Key* keys;
    uint64_t* users;
    float* floats[4];  // labels, dense, weight, value
  };

  struct Token {
    // The separator, name and colon in front of the value: up to 8 bytes (then tail = head), or two words that overlap.
    uint64_t head = 0, head_mask = 0;
    uint64_t tail = 0;
    uint32_t tail_at = 0;
    uint32_t length = 0;
    uint32_t to = 0;  // index in its target
  };
  enum class Kind : uint8_t { kKey, kUser, kFloat, kIgnored };
  // Tokens in a row of one kind and target, with prefixes of one class: the loop over them has no branch to mispredict.
  struct Run {
    Kind kind = Kind::kIgnored;
    uint8_t target = 0;
    bool is_short = false;  // every prefix fits in 8 bytes
    uint32_t begin = 0, end = 0;
  };

  enum class Target { kFastest, kPortable };  // kPortable is for tests: both give the same bits
  explicit SlotPlan(Target target = Target::kFastest);

  // Plans `line`, which the plain path took. False where it cannot be planned (a name of over 15 bytes).
  bool Compile(std::string_view line, const FieldMap& fields, int slots);
  void Clear() { runs_.clear(); }
  bool empty() const { return runs_.empty(); }

  // Parses the line at `p` and returns its '\n'; `separators` are the first tokens() of the text from there on. nullptr
  // where the line does not follow the plan: then what the targets hold means nothing.
  const char* Follow(const char* p, const char* const* separators, const Targets& targets) const {
    return follow_(p, separators, tokens_.data(), runs_.data(), runs_.data() + runs_.size(), targets);
  }
  SeparatorIndex::ScanFn scan() const { return scan_; }

  size_t tokens() const { return tokens_.size(); }
  size_t keys() const { return keys_; }
  size_t values() const { return values_; }
  const std::vector<uint32_t>& ends() const { return ends_; }  // of each slot's bag, from 0

 private:
  using FollowFn = const char* (*)(const char*, const char* const*, const Token*, const Run*, const Run*,
                                   const Targets&);

  void Place(const std::vector<FieldRef>& refs, int slots);

  FollowFn follow_;
  SeparatorIndex::ScanFn scan_;
  std::vector<Token> tokens_;
  std::vector<Run> runs_;
  std::vector<uint32_t> ends_;
  size_t keys_ = 0;
  size_t values_ = 0;
};

}  // namespace regatta::data
