#include "data/parser/slot_plan.h"

#include <cstring>

#include "base/multiversion.h"

namespace regatta::data {
namespace {

using Token = SlotPlan::Token;
using Run = SlotPlan::Run;

enum Target : uint8_t { kLabelTarget, kDenseTarget, kWeightTarget, kValueTarget };

// `prefix` is followed by readable bytes: the value and what comes behind the line.
Token MakeToken(std::string_view prefix) {
  Token token;
  token.length = static_cast<uint32_t>(prefix.size());
  token.head = number::Load8(prefix.data());
  token.head_mask = prefix.size() >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * prefix.size())) - 1;
  token.head &= token.head_mask;
  if (prefix.size() > 8) {
    token.tail_at = token.length - 8;
    token.tail = number::Load8(prefix.data() + token.tail_at);
    token.tail_mask = ~uint64_t{0};
  }
  return token;
}

[[gnu::always_inline]] inline bool MatchesShort(const char* p, const Token& token) {
  return ((number::Load8(p) ^ token.head) & token.head_mask) == 0;
}
[[gnu::always_inline]] inline bool Matches(const char* p, const Token& token) {
  return (((number::Load8(p) ^ token.head) & token.head_mask) |
          ((number::Load8(p + token.tail_at) ^ token.tail) & token.tail_mask)) == 0;
}

template <bool kShort>
[[gnu::always_inline]] inline const char* FollowIds(const char* p, const Token* token, const Token* end,
                                                    uint64_t* out) {
  for (; token != end; ++token) {
    if (!(kShort ? MatchesShort(p, *token) : Matches(p, *token))) [[unlikely]]
      return nullptr;
    p = ScanId(p + token->length, out + token->to);
    if (p == nullptr) [[unlikely]]
      return nullptr;
  }
  return p;
}

[[gnu::always_inline]] inline const char* FollowFloats(const char* p, const Token* token, const Token* end,
                                                       float* out) {
  for (; token != end; ++token) {
    if (!Matches(p, *token)) [[unlikely]]
      return nullptr;
    p = ScanDecimal(p + token->length, out + token->to);
    if (p == nullptr) [[unlikely]]
      return nullptr;
  }
  return p;
}

[[gnu::always_inline]] inline const char* FollowIgnored(const char* p, const Token* token, const Token* end) {
  for (; token != end; ++token) {
    if (!Matches(p, *token)) [[unlikely]]
      return nullptr;
    p += token->length;
    const char* const value = p;
    while (*p != ' ' && *p != '\t' && *p != '\n' && *p != '\r') ++p;
    if (p == value) return nullptr;
  }
  return p;
}

REGATTA_MULTIVERSION
const char* FollowRuns(const char* p, const Token* tokens, const Run* run, const Run* runs_end,
                       const SlotPlan::Targets& targets) {
  for (; run != runs_end; ++run) {
    const Token* const begin = tokens + run->begin;
    const Token* const end = tokens + run->end;
    switch (run->kind) {
      case SlotPlan::Kind::kKey:
        p = run->is_short ? FollowIds<true>(p, begin, end, targets.keys)
                          : FollowIds<false>(p, begin, end, targets.keys);
        break;
      case SlotPlan::Kind::kUser:
        p = FollowIds<false>(p, begin, end, targets.users);
        break;
      case SlotPlan::Kind::kFloat:
        p = FollowFloats(p, begin, end, targets.floats[run->target]);
        break;
      case SlotPlan::Kind::kIgnored:
        p = FollowIgnored(p, begin, end);
        break;
    }
    if (p == nullptr) return nullptr;
  }
  p += *p == '\r';
  return *p == '\n' ? p : nullptr;
}

Run RunOf(FieldRef ref, bool is_short) {
  Run run;
  run.is_short = is_short;
  switch (ref.field) {
    case Field::kSparse:
      run.kind = SlotPlan::Kind::kKey;
      break;
    case Field::kUser:
      run.kind = SlotPlan::Kind::kUser;
      break;
    case Field::kIgnored:
      run.kind = SlotPlan::Kind::kIgnored;
      break;
    case Field::kLabel:
    case Field::kDense:
    case Field::kWeight:
    case Field::kValue:
      run.kind = SlotPlan::Kind::kFloat;
      run.target = ref.field == Field::kLabel    ? kLabelTarget
                   : ref.field == Field::kDense  ? kDenseTarget
                   : ref.field == Field::kWeight ? kWeightTarget
                                                 : kValueTarget;
      break;
  }
  return run;
}

}  // namespace

bool SlotPlan::Compile(std::string_view line, const FieldMap& fields, int slots) {
  tokens_.clear(), runs_.clear();
  std::vector<FieldRef> refs;
  const char* p = line.data();
  const char* const end = p + line.size();
  while (p < end) {
    // A prefix is one separator (none at the start), the name and the colon; odd spacing is left to the plain path.
    const char* const colon = static_cast<const char*>(std::memchr(p, ':', static_cast<size_t>(end - p)));
    if (colon == nullptr) break;
    const std::string_view prefix(p, static_cast<size_t>(colon + 1 - p));
    const std::string_view name =
        refs.empty() ? prefix.substr(0, prefix.size() - 1) : prefix.substr(1, prefix.size() - 2);
    if (prefix.size() > 16 || name.empty() || name.find_first_of(" \t") != name.npos) return Clear(), false;
    refs.push_back(fields.Find(name));
    tokens_.push_back(MakeToken(prefix));
    Run run = RunOf(refs.back(), prefix.size() <= 8);
    run.begin = static_cast<uint32_t>(tokens_.size() - 1);
    run.end = run.begin + 1;
    if (!runs_.empty() && runs_.back().kind == run.kind && runs_.back().target == run.target &&
        runs_.back().is_short == run.is_short) {
      runs_.back().end = run.end;
    } else {
      runs_.push_back(run);
    }
    p = colon + 1;
    while (p < end && *p != ' ' && *p != '\t') ++p;
  }
  Place(refs, slots);
  return true;
}

// Where each token's value goes: keys and their values by slot, then by position; the rest by position.
void SlotPlan::Place(const std::vector<FieldRef>& refs, int slots) {
  ends_.assign(static_cast<size_t>(slots), 0);
  for (const FieldRef& ref : refs)
    if (ref.field == Field::kSparse) ++ends_[ref.slot];
  std::vector<uint32_t> next(ends_.size());
  uint32_t at = 0;
  for (size_t slot = 0; slot < ends_.size(); ++slot) {
    next[slot] = at;
    at += ends_[slot];
    ends_[slot] = at;
  }
  keys_ = at;
  values_ = 0;
  std::vector<uint32_t> key_places;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (refs[i].field != Field::kSparse) continue;
    tokens_[i].to = next[refs[i].slot]++;
    key_places.push_back(tokens_[i].to);
  }
  uint32_t dense = 0;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (refs[i].field == Field::kDense) tokens_[i].to = dense++;
    if (refs[i].field == Field::kValue) tokens_[i].to = key_places[values_++];
  }
}

const char* SlotPlan::Follow(const char* p, const Targets& targets) const {
  return FollowRuns(p, tokens_.data(), runs_.data(), runs_.data() + runs_.size(), targets);
}

}  // namespace regatta::data
