// What a worker does around a pull and a push, without tensors: the distinct keys of a batch and where each occurs.
// Built ahead of the step that uses it.
// Thread-safety: a KeyPlan is a plain value; a Planner belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/key.h"
#include "base/step.h"

namespace regatta::lookup {

// The bags of a batch that one set of slots selects, sample-major: bag b = sample * slots + slot.
struct Bags {
  std::span<const base::Key> keys;
  std::span<const uint32_t> offsets;  // bags + 1
  std::span<const float> values;      // a weight per key, or empty
};

// Invariants: keys are distinct and grouped by virtual shard, shards ascending; row_of[p] is the place in `keys` of
// the p-th id; occurrences of keys[u] are occurrence[occurrence_begin[u] .. occurrence_begin[u + 1]), bags ascending.
struct KeyPlan {
  std::vector<base::Key> keys;
  std::vector<uint32_t> shard_begin;       // kVirtualShards + 1
  std::vector<uint32_t> row_of;            // one per id
  std::vector<uint32_t> offsets;           // bags + 1, copied from the batch
  std::vector<float> values;               // one per id, or empty
  std::vector<uint32_t> occurrence_begin;  // keys + 1
  std::vector<uint32_t> occurrence;        // the bag of each occurrence
  std::vector<float> occurrence_value;     // its weight, or empty
  bool one_id_a_bag = false;               // every bag holds exactly one id

  base::TableKeys For(int table) const { return {table, keys, shard_begin}; }
};

// Makes plans; keeps its scratch memory between batches.
class Planner {
 public:
  void Plan(const Bags& bags, KeyPlan& plan);

 private:
  struct Entry {
    base::Key key;
    uint32_t id;  // place in Bags::keys
    uint32_t bag;
  };
  void Partition(const Bags& bags);
  void Deduplicate(std::span<const Entry> entries, KeyPlan& plan);
  void ListOccurrences(std::span<const Entry> entries, uint32_t first_row, std::span<const float> values,
                       KeyPlan& plan);

  std::vector<Entry> entries_;         // grouped by shard, in order of id
  std::vector<uint32_t> entry_begin_;  // kVirtualShards + 1
  std::vector<uint32_t> cursor_;
  std::vector<uint16_t> shard_of_;  // of each key
  // Of one shard, reused for each.
  std::vector<uint32_t> slots_;  // a small hash table: row + 1, 0 = empty
  std::vector<uint32_t> row_;    // of each entry
};

}  // namespace regatta::lookup
