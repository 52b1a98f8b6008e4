#include "data/parser/slot_plan.h"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace regatta::data {
namespace {

using Token = SlotPlan::Token;
using Run = SlotPlan::Run;

enum FloatTarget : uint8_t { kLabelTarget, kDenseTarget, kWeightTarget, kValueTarget };

// `prefix` is followed by readable bytes: the value and what comes behind the line.
Token MakeToken(std::string_view prefix) {
  Token token;
  token.length = static_cast<uint32_t>(prefix.size());
  token.head = number::Load8(prefix.data());
  token.head_mask = prefix.size() >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * prefix.size())) - 1;
  token.head &= token.head_mask;
  token.tail = token.head;
  if (prefix.size() > 8) {
    token.tail_at = token.length - 8;
    token.tail = number::Load8(prefix.data() + token.tail_at);
  }
  return token;
}

// Lines are followed by code compiled for the machine at hand; every version gives the same bits.
namespace portable {
#define REGATTA_FOLLOW_TARGET
#include "data/parser/slot_follow.inc"
#undef REGATTA_FOLLOW_TARGET
}  // namespace portable

#if defined(__x86_64__)
namespace v3 {
#define REGATTA_FOLLOW_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define REGATTA_FOLLOW_AVX2
#include "data/parser/slot_follow.inc"
#undef REGATTA_FOLLOW_AVX2
#undef REGATTA_FOLLOW_TARGET
}  // namespace v3
bool HasV3() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }
#endif

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

// Where each token's value goes: keys and their values by slot, then by position; labels by label; the rest by
// position.
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
    if (refs[i].field == Field::kLabel) tokens_[i].to = refs[i].slot;
    if (refs[i].field == Field::kDense) tokens_[i].to = dense++;
    if (refs[i].field == Field::kValue) tokens_[i].to = key_places[values_++];
  }
}

SlotPlan::SlotPlan(Target target) : follow_(&portable::FollowLine), scan_(&portable::ScanSeparators) {
#if defined(__x86_64__)
  if (target == Target::kFastest && HasV3()) {
    follow_ = &v3::FollowLine;
    scan_ = &v3::ScanSeparators;
  }
#else
  static_cast<void>(target);
#endif
}

}  // namespace regatta::data
