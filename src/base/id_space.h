// Whether the same id in two sparse slots means the same thing. A save records the name: names never change.
// Thread-safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace regatta::base {

// kShared: an id is one key in every slot, as with feasigns. kSlot: every slot has ids of its own, as with columns.
enum class IdSpace : uint8_t { kShared, kSlot };

inline constexpr std::array<std::string_view, 2> kIdSpaceNames = {"shared", "slot"};  // in the order of the enum

constexpr std::string_view Name(IdSpace space) { return kIdSpaceNames[static_cast<size_t>(space)]; }

}  // namespace regatta::base
