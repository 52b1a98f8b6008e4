// What the rows of a ledger came to.
// Thread-safety: plain values.
#pragma once

#include <cstdint>

namespace regatta::fault {

struct Count {
  uint64_t rows = 0;
  uint64_t lost = 0;
  uint64_t doubled = 0;
  uint64_t wrong = 0;  // anything else
  uint64_t extra = 0;  // there, though they were not acknowledged

  void Add(float value, uint64_t expected, bool acknowledged = true) {
    const auto want = static_cast<float>(expected);
    if (value == want) {
      extra += acknowledged ? 0 : 1;
    } else if (!acknowledged && value == 0) {
      return;
    } else if (value >= 0 && value < want && value == static_cast<float>(static_cast<uint64_t>(value))) {
      ++lost;
    } else if (value > want && value == static_cast<float>(static_cast<uint64_t>(value))) {
      ++doubled;
    } else {
      ++wrong;
    }
  }
  bool exact() const { return lost + doubled + wrong == 0; }
};

}  // namespace regatta::fault
