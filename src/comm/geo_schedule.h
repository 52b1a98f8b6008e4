// Which batches of a pass make up a round of geo: the rounds between whose ends a worker exchanges. A round is a tenth
// of the pass so far, but at least one batch and at most `longest`. So a pass of ten batches or more has at least ten
// rounds, however long it turns out to be, and all workers divide their passes alike.
//
//   longest 400: rounds end after batch 1, 2, … 11, 13, 15, … 94 (round 30), 104, … 4037 (round 69), 4437, 4837, …
//
// Thread-safety: belongs to its owner's lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace regatta::comm {

class GeoSchedule {
 public:
  explicit GeoSchedule(uint64_t longest) : longest_(std::max<uint64_t>(longest, 1)) {}

  // A pass of which so many batches were learnt before.
  void Restart(uint64_t batches) {
    whole_ = begin_ = 0;
    end_ = 1;
    while (end_ <= batches) NextRound();
    batches_ = batches;
  }
  // A batch was learnt. Whether it was a round's last.
  bool Add() {
    if (++batches_ < end_) return false;
    NextRound();
    return true;
  }
  // Rounds that are whole, and with the one that has begun, if one has.
  uint64_t whole() const { return whole_; }
  uint64_t begun() const { return batches_ > begin_ ? whole_ + 1 : whole_; }

 private:
  static constexpr uint64_t kLeastRounds = 10;

  void NextRound() {
    ++whole_;
    begin_ = end_;
    end_ += std::clamp<uint64_t>((begin_ + kLeastRounds - 1) / kLeastRounds, 1, longest_);
  }

  const uint64_t longest_;
  uint64_t batches_ = 0;
  uint64_t whole_ = 0;
  uint64_t begin_ = 0;  // of the round that comes next, or has begun
  uint64_t end_ = 1;
};

}  // namespace regatta::comm
