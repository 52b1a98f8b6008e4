// The modes of a job with servers, one row each: the name, and what others need to know of a mode. They ask for a trait
// and never compare modes. comm/mode_table.cc has the other half of a row: how a worker's communicator is made.
// Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace regatta::base {

// What a server does with a change that a worker sends.
enum class Staging : uint8_t {
  kNone,    // it applies the change on arrival
  kSteps,   // it keeps the gradients of a step until all workers have sent theirs, and applies their sum once
  kRounds,  // it moves a row by the mean of the changes that workers send for a round
};

enum class Mode : uint8_t { kAsync, kSync, kHalfAsync, kGeo };

struct ModeTraits {
  Mode mode;
  std::string_view name;  // in configurations and on the wire; a literal
  Staging staging;
  bool short_rows;  // whether rows and gradients may cross the network as bfloat16

  // Every worker makes step n with the others. A step is a batch of every thread, so all workers need the same number
  // of threads; every lane gets a part of every step, also a lane without parameters; workers stop at the same step.
  constexpr bool steps_together() const { return staging == Staging::kSteps; }
  // Workers send differences of values, not gradients.
  constexpr bool sends_differences() const { return staging == Staging::kRounds; }
};

inline constexpr ModeTraits kModes[] = {
    {Mode::kAsync, "async", Staging::kNone, true},
    {Mode::kSync, "sync", Staging::kSteps, true},
    {Mode::kHalfAsync, "half_async", Staging::kNone, true},
    {Mode::kGeo, "geo", Staging::kRounds, false},
};
constexpr bool ModesInOrder() {
  size_t i = 0;
  for (const ModeTraits& traits : kModes)
    if (static_cast<size_t>(traits.mode) != i++) return false;
  return true;
}
static_assert(ModesInOrder(), "row i of kModes belongs to enum value i");

constexpr const ModeTraits& TraitsOf(Mode mode) { return kModes[static_cast<size_t>(mode)]; }
constexpr const char* Name(Mode mode) { return TraitsOf(mode).name.data(); }
constexpr std::optional<Mode> ModeNamed(std::string_view name) {
  for (const ModeTraits& traits : kModes)
    if (traits.name == name) return traits.mode;
  return std::nullopt;
}

}  // namespace regatta::base
