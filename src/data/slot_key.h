// The key of an id if every slot has ids of its own (base::IdSpace::kSlot). Saves depend on it: it never changes.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "base/key.h"

namespace regatta::data {

constexpr uint64_t SlotSalt(std::string_view slot) { return base::HashBytes(slot); }
constexpr base::Key SlotKey(uint64_t salt, uint64_t id) { return base::Mix64(id ^ salt); }

// The inverse of SlotKey: it undoes base::Mix64 step by step, with the inverses of its odd factors modulo 2^64.
constexpr uint64_t IdOfSlotKey(uint64_t salt, base::Key key) {
  uint64_t x = key;
  x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642B2D24D8EC3ULL;
  x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96DE1B173F119089ULL;
  return ((x ^ (x >> 30) ^ (x >> 60)) - 0x9E3779B97F4A7C15ULL) ^ salt;
}

}  // namespace regatta::data
