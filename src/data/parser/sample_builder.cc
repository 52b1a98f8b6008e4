#include "data/parser/sample_builder.h"

#include <algorithm>

#include "data/parser/number.h"
#include "data/parser/parser.h"

namespace regatta::data {
namespace {

absl::Status Expected(std::string_view what, std::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", base::View(what), ", found ", Quoted(found)));
}

absl::Status WantCount(std::string_view field, std::string_view slot, size_t want, size_t found) {
  if (want == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected ", want, " value", want == 1 ? "" : "s", " of the ",
                                                 base::View(field), " slot '", base::View(slot), "', found ", found));
}

}  // namespace

SampleBuilder::SampleBuilder(const Schema& schema)
    : schema_(schema),
      slots_(static_cast<int>(schema.sparse_slots.size())),
      label_ranges_(LabelRangesOf(schema)),
      counts_(schema.sparse_slots.size()),
      labels_(label_ranges_.size()) {
  const auto it = std::find(schema.sparse_slots.begin(), schema.sparse_slots.end(), schema.user_slot);
  if (it != schema.sparse_slots.end()) user_slot_ = static_cast<int>(it - schema.sparse_slots.begin());
}

void SampleBuilder::Begin() {
  label_counts_.assign(label_ranges_.size(), 0);
  keys_.clear(), dense_.clear(), weights_.clear(), values_.clear(), users_.clear();
  ordered_ = true;
}

absl::Status SampleBuilder::Add(FieldRef ref, std::string_view text) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (ref.field == Field::kIgnored) return absl::OkStatus();
  if (ref.field == Field::kSparse || ref.field == Field::kUser) {
    uint64_t id = 0;
    if (!ParseId(begin, end, &id)) return Expected("an id from 0 to 2^64-1", text);
    if (ref.field == Field::kUser) {
      users_.push_back(id);
    } else {
      AddKey(ref.slot, id);
    }
    return absl::OkStatus();
  }
  float value = 0;
  if (!ParseDecimal(begin, end, &value)) return Expected("a finite number", text);
  return AddNumber(ref, value, text);
}

absl::Status SampleBuilder::AddNumber(FieldRef ref, float value, std::string_view text) {
  if (ref.field == Field::kLabel) {
    if (!label_ranges_[ref.slot].Contains(value)) return Expected("a label from 0 to 1", text);
    labels_[ref.slot] = value;
    ++label_counts_[ref.slot];
    return absl::OkStatus();
  }
  if (ref.field == Field::kWeight && value < 0) return Expected("a sample weight from 0", text);
  (ref.field == Field::kDense ? dense_ : ref.field == Field::kValue ? values_ : weights_).push_back(value);
  return absl::OkStatus();
}

absl::Status SampleBuilder::CheckCounts() const {
  for (size_t i = 0; i < label_counts_.size(); ++i)
    RETURN_IF_ERROR(WantCount("label", schema_.labels[i], 1, label_counts_[i]));
  RETURN_IF_ERROR(WantCount("dense", schema_.dense_slot, static_cast<size_t>(schema_.dense_dim), dense_.size()));
  if (!schema_.weight_slot.empty()) RETURN_IF_ERROR(WantCount("weight", schema_.weight_slot, 1, weights_.size()));
  if (!schema_.user_slot.empty() && user_slot_ < 0)
    RETURN_IF_ERROR(WantCount("user", schema_.user_slot, 1, users_.size()));
  if (!schema_.value_slot.empty() && values_.size() != keys_.size())
    return absl::InvalidArgumentError(absl::StrCat("expected a value of the slot '", schema_.value_slot,
                                                   "' for each of ", keys_.size(), " ids, found ", values_.size()));
  return absl::OkStatus();
}

void SampleBuilder::AppendKeys(SampleBlock& block) {
  std::fill(counts_.begin(), counts_.end(), 0);
  for (const SlotKey& key : keys_) ++counts_[key.slot];
  const uint32_t base = static_cast<uint32_t>(block.keys.size());
  uint32_t* const ends = block.ends.Room(counts_.size());
  base::Key* const out = block.keys.Room(keys_.size());
  uint32_t at = 0;
  for (size_t slot = 0; slot < counts_.size(); ++slot) {
    const uint32_t begin = at;
    at += counts_[slot];
    ends[slot] = base + at;
    counts_[slot] = begin;
  }
  float* const values = values_.empty() ? nullptr : block.values.Room(keys_.size());
  for (size_t i = 0; i < keys_.size(); ++i) {
    const size_t to = ordered_ ? i : counts_[keys_[i].slot]++;
    out[to] = keys_[i].key;
    if (values != nullptr) values[to] = values_[i];
  }
  block.ends.Added(counts_.size());
  block.keys.Added(keys_.size());
  block.values.Added(values_.size());
}

absl::Status SampleBuilder::Finish(SampleBlock& block) {
  RETURN_IF_ERROR(CheckCounts());
  block.slots = slots_;
  block.dense_dim = schema_.dense_dim;
  block.label_dim = static_cast<int>(labels_.size());
  const size_t first_key = block.keys.size();
  AppendKeys(block);
  block.labels.Append(labels_.data(), labels_.size());
  block.dense.Append(dense_.data(), dense_.size());
  if (!schema_.weight_slot.empty()) block.weights.Append(weights_[0]);
  if (user_slot_ >= 0) {
    const size_t bag = static_cast<size_t>(block.size) * static_cast<size_t>(slots_) + static_cast<size_t>(user_slot_);
    const uint32_t begin = user_slot_ == 0 ? static_cast<uint32_t>(first_key) : block.ends[bag - 1];
    block.users.Append(begin == block.ends[bag] ? 0 : block.keys[begin]);
  } else if (!schema_.user_slot.empty()) {
    block.users.Append(users_[0]);
  }
  ++block.size;
  return absl::OkStatus();
}

}  // namespace regatta::data
