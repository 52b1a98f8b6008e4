// Which batches of a pass were learnt from: every batch below `low`, and some of the kWindow batches from `low` on.
// Batch k of (pass, worker) is a pure function of the files, seed, batch size and split, so a resume needs no more.
// Thread-safety: a plain value.
// Invariant: `beyond` is empty or ends with a word that is not 0, so that equal sets are equal values. It stays empty,
// and nothing is allocated, as long as the set bits lie within 64 batches.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace regatta::base {

struct DataPosition {
  uint64_t pass = 0;
  uint64_t low = 0;
  uint64_t window = 0;                // bit i: batch low + i
  std::vector<uint64_t> beyond = {};  // the window goes on: bit i of beyond[w] is batch low + 64 · (w + 1) + i

  // Room for 1024 threads, each with a batch in work and one ahead, and as much again for threads that are faster.
  static constexpr uint64_t kWindow = 4096;
  static constexpr size_t kMaxBeyond = kWindow / 64 - 1;  // words

  bool Contains(uint64_t batch) const {
    if (batch < low) return true;
    const uint64_t word = (batch - low) / 64, bit = (batch - low) % 64;
    if (word == 0) return (window >> bit) & 1;
    return word <= beyond.size() && ((beyond[word - 1] >> bit) & 1);
  }
  // Whether Add may be called with it.
  bool Fits(uint64_t batch) const { return batch < low || batch - low < kWindow; }
  // The batch must fit.
  void Add(uint64_t batch) {
    if (batch < low) return;
    const uint64_t word = (batch - low) / 64, bit = uint64_t{1} << ((batch - low) % 64);
    if (word > beyond.size()) beyond.resize(word);
    (word == 0 ? window : beyond[word - 1]) |= bit;
    while (window & 1) Advance(std::countr_one(window));
  }
  // Batches from here on are not contained.
  uint64_t end() const { return low + 64 * (1 + beyond.size()); }
  // How many are contained.
  uint64_t batches() const {
    uint64_t count = low + static_cast<uint64_t>(std::popcount(window));
    for (const uint64_t word : beyond) count += static_cast<uint64_t>(std::popcount(word));
    return count;
  }
  // What both of them contain. Of the same pass.
  DataPosition Common(const DataPosition& other) const {
    const DataPosition& less = low <= other.low ? *this : other;
    const DataPosition& more = low <= other.low ? other : *this;
    DataPosition common{pass, less.low, 0};
    for (uint64_t i = 0, bits = 64 * (1 + less.beyond.size()); i < bits; ++i)
      if (less.Contains(less.low + i) && more.Contains(less.low + i)) common.Add(less.low + i);
    return common;
  }
  // Takes a window's words as they were written, of which the last may be 0.
  void SetBeyond(std::span<const uint64_t> words) {
    beyond.assign(words.begin(), words.end());
    Trim();
  }
  friend bool operator==(const DataPosition&, const DataPosition&) = default;

 private:
  // Moves `low` on by 1 to 64 batches.
  void Advance(int by) {
    low += static_cast<uint64_t>(by);
    const auto next = [&](size_t word) { return word < beyond.size() ? beyond[word] : 0; };
    const auto shifted = [by](uint64_t word, uint64_t after) {
      return by == 64 ? after : (word >> by) | (after << (64 - by));
    };
    window = shifted(window, next(0));
    for (size_t word = 0; word < beyond.size(); ++word) beyond[word] = shifted(beyond[word], next(word + 1));
    Trim();
  }
  void Trim() {
    while (!beyond.empty() && beyond.back() == 0) beyond.pop_back();
  }
};

}  // namespace regatta::base
