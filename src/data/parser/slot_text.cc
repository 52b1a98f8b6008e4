#include "data/parser/slot_text.h"

#include <algorithm>
#include <cstring>

#include "data/parser/field_map.h"
#include "data/parser/sample_builder.h"
#include "data/parser/slot_plan.h"
#include "data/parser/undeclared_slots.h"

namespace regatta::data {
namespace {

bool IsSeparator(char c) { return c == ' ' || c == '\t'; }

class SlotTextParser final : public Parser {
 public:
  SlotTextParser(const Schema& schema, FieldMap fields)
      : fields_(std::move(fields)),
        builder_(schema),
        slots_(static_cast<int>(schema.sparse_slots.size())),
        dense_dim_(schema.dense_dim),
        label_dim_(static_cast<size_t>(schema.label_dim())),
        label_ranges_(LabelRangesOf(schema)),
        has_weight_(!schema.weight_slot.empty()),
        has_user_(!schema.user_slot.empty()) {
    const auto it = std::find(schema.sparse_slots.begin(), schema.sparse_slots.end(), schema.user_slot);
    if (it != schema.sparse_slots.end()) user_slot_ = static_cast<int>(it - schema.sparse_slots.begin());
  }

  void Parse(std::string_view text, SampleBlock& block) override;

 private:
  // What a line that follows the plan is parsed into before it counts.
  struct Draft {
    uint64_t user = 0;
    float* labels = nullptr;  // where they will be in the block
    float weight = 0;
  };

  const char* FollowPlan(const char* p, SampleBlock& block);
  SlotPlan::Targets TargetsOf(Draft& draft, SampleBlock& block) const;
  bool AreLabels(const float* labels) const;
  void Accept(const Draft& draft, SampleBlock& block) const;
  const char* ParsePlainly(const char* p, const char* end, SampleBlock& block);
  absl::Status ParseLine(std::string_view line, SampleBlock& block);

  // Constant after construction.
  const FieldMap fields_;
  SampleBuilder builder_;
  const int slots_;
  const int dense_dim_;
  const size_t label_dim_;
  const std::vector<LabelRange> label_ranges_;
  const bool has_weight_;
  const bool has_user_;
  int user_slot_ = -1;

  SlotPlan plan_;
  SeparatorIndex separators_{plan_.scan()};
  uint32_t misses_ = 0;  // good lines in a row that did not follow a plan
};

void SlotTextParser::Parse(std::string_view text, SampleBlock& block) {
  block.slots = slots_;
  block.dense_dim = dense_dim_;
  block.label_dim = static_cast<int>(label_dim_);
  const char* p = text.data();
  const char* const end = p + text.size();
  separators_.Start(p, end);
  while (p < end) {
    if (const char* const newline = plan_.empty() ? nullptr : FollowPlan(p, block); newline != nullptr) [[likely]] {
      misses_ = 0;
      p = newline + 1;
    } else {
      p = ParsePlainly(p, end, block) + 1;
    }
  }
}

SlotPlan::Targets SlotTextParser::TargetsOf(Draft& draft, SampleBlock& block) const {
  draft.labels = block.labels.Room(label_dim_);
  return {block.keys.Room(plan_.keys()),
          &draft.user,
          {draft.labels, block.dense.Room(static_cast<size_t>(dense_dim_)), &draft.weight,
           block.values.Room(plan_.values())}};
}

// The '\n' of the line, or nullptr: the block's columns grow only where the line follows the plan.
const char* SlotTextParser::FollowPlan(const char* p, SampleBlock& block) {
  const char* const* const separators = separators_.From(p, plan_.tokens());
  if (separators == nullptr) return nullptr;
  Draft draft;
  const char* const newline = plan_.Follow(p, separators, TargetsOf(draft, block));
  if (newline == nullptr || draft.weight < 0 || !AreLabels(draft.labels)) return nullptr;
  separators_.Pass(plan_.tokens());
  Accept(draft, block);
  return newline;
}

bool SlotTextParser::AreLabels(const float* labels) const {
  for (const LabelRange& range : label_ranges_)
    if (!range.Contains(*labels++)) return false;
  return true;
}

void SlotTextParser::Accept(const Draft& draft, SampleBlock& block) const {
  const uint32_t base = static_cast<uint32_t>(block.keys.size());
  uint32_t* const ends = block.ends.Room(static_cast<size_t>(slots_));
  const uint32_t* const planned = plan_.ends().data();
  const size_t slots = static_cast<size_t>(slots_);  // a copy: the loop's stores might be to the member
  for (size_t slot = 0; slot < slots; ++slot) ends[slot] = base + planned[slot];
  block.ends.Added(static_cast<size_t>(slots_));
  block.keys.Added(plan_.keys());
  block.values.Added(plan_.values());
  block.dense.Added(static_cast<size_t>(dense_dim_));
  block.labels.Added(label_dim_);
  if (has_weight_) block.weights.Append(draft.weight);
  if (user_slot_ >= 0) {
    const uint32_t begin = user_slot_ == 0 ? base : ends[user_slot_ - 1];
    block.users.Append(begin == ends[user_slot_] ? 0 : block.keys[begin]);
  } else if (has_user_) {
    block.users.Append(draft.user);
  }
  ++block.size;
  ++block.lines;
}

const char* SlotTextParser::ParsePlainly(const char* p, const char* end, SampleBlock& block) {
  const char* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
  if (newline == nullptr) newline = end;
  const char* line_end = newline > p && newline[-1] == '\r' ? newline - 1 : newline;
  const std::string_view line(p, static_cast<size_t>(line_end - p));
  if (IsBlank(line)) {
    ++block.lines;
    return newline;
  }
  if (absl::Status status = ParseLine(line, block); !status.ok()) {
    block.AddBadLine(block.lines, std::string(status.message()), line.data(), line.size());
  } else {
    // Lines that all differ (multi-valued slots) would pay for a plan each; plan at the 1st, 2nd, 4th, … 1024th miss
    // and try the plan for one line only.
    ++misses_;
    if ((misses_ & (misses_ - 1)) == 0 || misses_ % 1024 == 0) {
      plan_.Compile(line, fields_, slots_);
    } else {
      plan_.Clear();
    }
  }
  ++block.lines;
  return newline;
}

absl::Status SlotTextParser::ParseLine(std::string_view line, SampleBlock& block) {
  builder_.Begin();
  const char* p = line.data();
  const char* const end = p + line.size();
  while (true) {
    while (p < end && IsSeparator(*p)) ++p;
    if (p == end) break;
    const char* const token = p;
    while (p < end && !IsSeparator(*p)) ++p;
    const std::string_view whole(token, static_cast<size_t>(p - token));
    const size_t colon = whole.find(':');
    if (colon == whole.npos || colon == 0 || colon + 1 == whole.size())
      return absl::InvalidArgumentError(absl::StrCat("expected slot:value, found ", Quoted(whole)));
    const std::string_view name = whole.substr(0, colon);
    if (absl::Status status = builder_.Add(fields_.Find(name), whole.substr(colon + 1)); !status.ok())
      return base::Annotate(status, absl::StrCat("slot ", Quoted(name)));
  }
  return builder_.Finish(block);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Parser>> MakeSlotTextParser(const Schema& schema) {
  ASSIGN_OR_RETURN(FieldMap fields, FieldMap::Make(schema));
  return std::unique_ptr<Parser>(new SlotTextParser(schema, std::move(fields)));
}

std::vector<std::string> OtherSlotsOfSlotText(std::string_view text, const Schema& schema) {
  return UndeclaredSlots(text, schema, NameSide::kBeforeColon);
}

}  // namespace regatta::data
