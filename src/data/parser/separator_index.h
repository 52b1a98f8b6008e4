// Where the separators of a text are: the bytes up to ' ', line ends among them. Found many bytes at a time and ahead
// of the parser, so that where one token ends does not depend on having parsed the one before. Thread-safety: belongs
// to one parser.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace regatta::data {

class SeparatorIndex {
 public:
  // Lists the separators of [begin, end) and returns how many they are. May read and write up to 64 bytes and entries
  // more.
  using ScanFn = size_t (*)(const char* begin, const char* end, const char** out);

  explicit SeparatorIndex(ScanFn scan) : scan_(scan) {}

  // `end` has kPadding readable bytes behind.
  void Start(const char* begin, const char* end) {
    scanned_ = begin;
    end_ = end;
    at_ = size_ = 0;
  }

  // The first `count` separators from p on, or nullptr where there are fewer. p never goes back.
  const char* const* From(const char* p, size_t count) {
    while (at_ < size_ && places_[at_] < p) ++at_;
    if (size_ - at_ < count) [[unlikely]]
      Scan(p, count);
    return size_ - at_ < count ? nullptr : places_.data() + at_;
  }
  // Passes over `count` of those that From gave.
  void Pass(size_t count) { at_ += count; }

 private:
  static constexpr ptrdiff_t kChunk = 4096;  // bytes at a time: what comes of them stays in the first-level cache

  void Scan(const char* p, size_t count) {
    std::copy(places_.begin() + static_cast<ptrdiff_t>(at_), places_.begin() + static_cast<ptrdiff_t>(size_),
              places_.begin());
    size_ -= at_;
    at_ = 0;
    scanned_ = std::max(scanned_, p);
    while (size_ < count && scanned_ < end_) {
      const char* const to = end_ - scanned_ > kChunk ? scanned_ + kChunk : end_;
      places_.resize(std::max(places_.size(), size_ + kChunk + 64));
      size_ += scan_(scanned_, to, places_.data() + size_);
      scanned_ = to;
    }
  }

  const ScanFn scan_;
  const char* scanned_ = nullptr;
  const char* end_ = nullptr;
  std::vector<const char*> places_;
  size_t at_ = 0, size_ = 0;  // of the places that are still ahead
};

}  // namespace regatta::data
