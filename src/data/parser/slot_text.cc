#include "data/parser/slot_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "data/parser/field_map.h"
#include "data/parser/sample_builder.h"
#include "data/parser/slot_plan.h"

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
        has_weight_(!schema.weight_slot.empty()),
        has_user_(!schema.user_slot.empty()) {
    const auto it = std::find(schema.sparse_slots.begin(), schema.sparse_slots.end(), schema.user_slot);
    if (it != schema.sparse_slots.end()) user_slot_ = static_cast<int>(it - schema.sparse_slots.begin());
  }

  void Parse(std::string_view text, SampleBlock& block) override {
    std::array<Lane, 1> lanes = {Lane{text.data(), text.data() + text.size(), &block}};
    ParseLanes(lanes);
  }

  void ParseTwo(std::string_view first, SampleBlock& first_block, std::string_view second,
                SampleBlock& second_block) override {
    std::array<Lane, 2> lanes = {Lane{first.data(), first.data() + first.size(), &first_block},
                                 Lane{second.data(), second.data() + second.size(), &second_block}};
    ParseLanes(lanes);
    for (const Lane& lane : lanes) {
      std::array<Lane, 1> rest = {lane};
      ParseLanes(rest);
    }
  }

 private:
  // Text that is parsed side by side with that of other lanes.
  struct Lane {
    const char* p;
    const char* end;
    SampleBlock* block;
  };
  // What a line that follows the plan is parsed into before it counts.
  struct Draft {
    uint64_t user = 0;
    float label = 0;
    float weight = 0;
  };

  // Parses until one of the lanes is at its end.
  template <size_t kLanes>
  void ParseLanes(std::array<Lane, kLanes>& lanes);
  template <size_t kLanes>
  bool FollowPlan(std::array<Lane, kLanes>& lanes);
  SlotPlan::Targets TargetsOf(Draft& draft, SampleBlock& block) const;
  void Accept(const Draft& draft, SampleBlock& block) const;
  const char* ParsePlainly(const char* p, const char* end, SampleBlock& block);
  absl::Status ParseLine(std::string_view line, SampleBlock& block);

  // Constant after construction.
  const FieldMap fields_;
  SampleBuilder builder_;
  const int slots_;
  const int dense_dim_;
  const bool has_weight_;
  const bool has_user_;
  int user_slot_ = -1;

  SlotPlan plan_;
  uint32_t misses_ = 0;  // good lines in a row that did not follow a plan
};

template <size_t kLanes>
void SlotTextParser::ParseLanes(std::array<Lane, kLanes>& lanes) {
  for (Lane& lane : lanes) {
    lane.block->slots = slots_;
    lane.block->dense_dim = dense_dim_;
  }
  while (std::all_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.p < lane.end; })) {
    if (!plan_.empty() && FollowPlan(lanes)) [[likely]] {
      misses_ = 0;
      continue;
    }
    for (Lane& lane : lanes) {
      std::array<Lane, 1> alone = {lane};
      const bool follows = kLanes > 1 && !plan_.empty() && FollowPlan(alone);
      lane.p = follows ? alone[0].p : ParsePlainly(lane.p, lane.end, *lane.block) + 1;
      if (follows) misses_ = 0;
    }
  }
}

SlotPlan::Targets SlotTextParser::TargetsOf(Draft& draft, SampleBlock& block) const {
  return {block.keys.Room(plan_.keys()),
          &draft.user,
          {&draft.label, block.dense.Room(static_cast<size_t>(dense_dim_)), &draft.weight,
           block.values.Room(plan_.values())}};
}

// Moves every lane behind its line, or none; the blocks' columns grow only then.
template <size_t kLanes>
bool SlotTextParser::FollowPlan(std::array<Lane, kLanes>& lanes) {
  std::array<Draft, kLanes> drafts;
  std::array<SlotPlan::Targets, kLanes> targets;
  std::array<const char*, kLanes> p;
  for (size_t i = 0; i < kLanes; ++i) {
    targets[i] = TargetsOf(drafts[i], *lanes[i].block);
    p[i] = lanes[i].p;
  }
  if (!plan_.Follow(p, targets.data())) [[unlikely]]
    return false;
  for (const Draft& draft : drafts)
    if (draft.weight < 0) return false;
  for (size_t i = 0; i < kLanes; ++i) {
    Accept(drafts[i], *lanes[i].block);
    lanes[i].p = p[i] + 1;
  }
  return true;
}

void SlotTextParser::Accept(const Draft& draft, SampleBlock& block) const {
  const uint32_t base = static_cast<uint32_t>(block.keys.size());
  uint32_t* const ends = block.ends.Room(static_cast<size_t>(slots_));
  const uint32_t* const planned = plan_.ends().data();
  for (int slot = 0; slot < slots_; ++slot) ends[slot] = base + planned[slot];
  block.ends.Added(static_cast<size_t>(slots_));
  block.keys.Added(plan_.keys());
  block.values.Added(plan_.values());
  block.dense.Added(static_cast<size_t>(dense_dim_));
  block.labels.Append(draft.label);
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

}  // namespace regatta::data
