// A batch as parsed: ids of every slot, dense features, labels. Sample-major, because parsers write and pooling
// reads it in that order.
// Thread-safety: a plain value.
// Invariant: bag (sample, slot) holds keys [offsets[sample * slots + slot], offsets[sample * slots + slot + 1]).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id_space.h"
#include "base/key.h"

namespace regatta::data {

// kAbsent: a line needs no label, and one that is there is not read. For data to be scored.
enum class LabelUse : uint8_t { kRead, kAbsent };

// What a model reads of a line, in the order of the declaration.
struct Schema {
  std::vector<std::string> labels = {"click"};  // one, or several for a model of several tasks
  // Those of `labels` that may be any finite number; the others are from 0 to 1. NetSpec::DataSchema fills it in from
  // what the outputs are.
  std::vector<std::string> real_labels;
  LabelUse label_use = LabelUse::kRead;
  std::vector<std::string> sparse_slots;  // "1" … "26"
  std::string dense_slot = "dense_feature";
  int dense_dim = 0;
  std::string weight_slot;  // "" = every sample weighs 1
  std::string user_slot;    // "" = none; for gauc. May be one of sparse_slots
  std::string value_slot;   // "" = every key weighs 1; else one float a key, in the order of the keys
  base::IdSpace id_space =
      base::IdSpace::kShared;  // kSlot: the key of an id is its SlotKey (slot_key.h); users stay ids

  // Labels that are read of a sample.
  int label_dim() const { return label_use == LabelUse::kRead ? static_cast<int>(labels.size()) : 0; }
  bool IsReal(std::string_view label) const {
    return std::find(real_labels.begin(), real_labels.end(), label) != real_labels.end();
  }
};

// Criteo's shape: slots named 1 … n, and dense features.
inline Schema CriteoSchema(int slots = 26, int dense_dim = 13) {
  Schema schema;
  for (int slot = 1; slot <= slots; ++slot) schema.sparse_slots.push_back(std::to_string(slot));
  schema.dense_dim = dense_dim;
  return schema;
}

struct Batch {
  uint64_t pass = 0;
  uint64_t index = 0;  // k: the k-th batch of (pass, worker)
  int size = 0;        // samples
  int slots = 0;
  int dense_dim = 0;
  int label_dim = 1;  // labels of a sample; 0 = they were not read
  std::vector<base::Key> keys;
  std::vector<uint32_t> offsets;  // size * slots + 1 entries
  std::vector<float> values;      // a weight per key; empty = every key weighs 1
  std::vector<float> dense;       // size * dense_dim
  std::vector<float> labels;      // size * label_dim
  std::vector<float> weights;     // size, or empty
  std::vector<uint64_t> users;    // size, or empty
  uint64_t bytes = 0;             // input bytes this batch was read from, for progress

  // Empties the batch and keeps its memory.
  void Clear() {
    pass = index = bytes = 0;
    size = slots = dense_dim = 0;
    label_dim = 1;
    keys.clear(), offsets.clear(), values.clear(), dense.clear(), labels.clear(), weights.clear(), users.clear();
  }
};

}  // namespace regatta::data
