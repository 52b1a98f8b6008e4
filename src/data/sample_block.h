// Samples parsed from one block of lines, in the order of the lines: what a parser writes and a dataset cuts into
// batches. Bad lines are kept aside and leave no trace in the columns.
// Thread-safety: a plain value.
// Invariant: bag (sample, slot) holds keys [ends[i - 1], ends[i]) with i = sample * slots + slot, and 0 for ends[-1].
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/key.h"
#include "data/column.h"

namespace regatta::data {

struct BadLine {
  uint64_t line = 0;  // counted from 0 at the block's first line
  std::string reason;
  std::string text;  // the line, cut at kKeptText bytes

  static constexpr size_t kKeptText = 1024;
};

struct SampleBlock {
  int size = 0;
  int slots = 0;
  int dense_dim = 0;
  int label_dim = 1;
  Column<base::Key> keys;
  Column<uint32_t> ends;
  Column<float> values;
  Column<float> dense;
  Column<float> labels;
  Column<float> weights;
  Column<uint64_t> users;

  uint64_t lines = 0;      // good and bad
  uint64_t bad_lines = 0;  // of which the first, up to kKeptBadBytes, are in `bad`
  std::vector<BadLine> bad;
  uint64_t bad_bytes = 0;                // that `bad` holds
  uint64_t disk_bytes = 0;               // what was read of the file for these lines
  int file = 0;                          // index of the file they are from
  uint64_t first_line = 1;               // number of the block's first line in that file
  std::vector<std::string> other_slots;  // that lines name and no schema declares; looked for where there is no key

  static constexpr uint64_t kKeptBadBytes = 16 << 20;  // as much as a quarantine file takes

  void Clear() {
    size = slots = dense_dim = file = 0;
    label_dim = 1;
    keys.Clear(), ends.Clear(), values.Clear(), dense.Clear(), labels.Clear(), weights.Clear(), users.Clear();
    lines = bad_lines = disk_bytes = 0;
    ClearBad();
    other_slots.clear();
    first_line = 1;
  }
  void AddBadLine(uint64_t line, std::string reason, const char* text, size_t text_bytes) {
    ++bad_lines;
    if (bad_bytes >= kKeptBadBytes) return;
    bad.push_back({line, std::move(reason), std::string(text, std::min(text_bytes, BadLine::kKeptText))});
    bad_bytes += sizeof(BadLine) + bad.back().reason.size() + bad.back().text.size();
  }
  void ClearBad() {
    bad = {};  // the memory too: they are rare
    bad_bytes = 0;
  }
  uint32_t BagBegin(size_t bag) const { return bag == 0 ? 0 : ends[bag - 1]; }
  uint32_t SampleBegin(size_t sample) const { return BagBegin(sample * static_cast<size_t>(slots)); }
  size_t MemoryBytes() const {
    return keys.bytes() + ends.bytes() + values.bytes() + dense.bytes() + labels.bytes() + weights.bytes() +
           users.bytes() + bad_bytes;
  }
};

}  // namespace regatta::data
