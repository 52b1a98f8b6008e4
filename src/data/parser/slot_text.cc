#include "data/parser/slot_text.h"

#include <algorithm>
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
    const char* p = text.data();
    const char* const end = p + text.size();
    block.slots = slots_;
    block.dense_dim = dense_dim_;
    while (p < end) {
      if (!plan_.empty()) {
        if (const char* newline = FollowPlan(p, block)) [[likely]] {
          misses_ = 0;
          ++block.lines;
          p = newline + 1;
          continue;
        }
      }
      p = ParsePlainly(p, end, block) + 1;
    }
  }

 private:
  const char* FollowPlan(const char* p, SampleBlock& block);
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

// Returns the line's '\n', or nullptr where the line does not follow; the block's columns grow only on success.
const char* SlotTextParser::FollowPlan(const char* p, SampleBlock& block) {
  const size_t first_key = block.keys.size();
  uint64_t user = 0;
  float label = 0;
  float weight = 0;
  SlotPlan::Targets targets;
  targets.keys = block.keys.Room(plan_.keys());
  targets.users = &user;
  targets.floats[0] = &label;
  targets.floats[1] = block.dense.Room(static_cast<size_t>(dense_dim_));
  targets.floats[2] = &weight;
  targets.floats[3] = block.values.Room(plan_.values());
  const char* const newline = plan_.Follow(p, targets);
  if (newline == nullptr || weight < 0) [[unlikely]]
    return nullptr;

  uint32_t* const ends = block.ends.Room(static_cast<size_t>(slots_));
  const uint32_t base = static_cast<uint32_t>(first_key);
  const uint32_t* const planned = plan_.ends().data();
  for (int slot = 0; slot < slots_; ++slot) ends[slot] = base + planned[slot];
  block.ends.Added(static_cast<size_t>(slots_));
  block.keys.Added(plan_.keys());
  block.values.Added(plan_.values());
  block.dense.Added(static_cast<size_t>(dense_dim_));
  block.labels.Append(label);
  if (has_weight_) block.weights.Append(weight);
  if (user_slot_ >= 0) {
    const uint32_t begin = user_slot_ == 0 ? base : ends[user_slot_ - 1];
    user = begin == ends[user_slot_] ? 0 : targets.keys[begin - base];
  }
  if (has_user_) block.users.Append(user);
  ++block.size;
  return newline;
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
