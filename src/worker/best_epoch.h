// The epoch whose validation was the best so far, as saves carry it and workers tell it to each other.
// Thread-safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "checkpoint/run_state.h"

namespace regatta::worker {

struct BestEpoch {
  uint64_t epoch = 0;
  double score = 0;  // AUC, or −loss where AUC is undefined
};

// As two numbers; none is two zeros.
std::array<uint64_t, 2> NumbersOf(const std::optional<BestEpoch>& best);
std::optional<BestEpoch> BestOf(std::span<const uint64_t, 2> numbers);

// As a save has it.
void PutBest(const std::optional<BestEpoch>& best, checkpoint::RunState& run);
std::optional<BestEpoch> BestFrom(const checkpoint::RunState& run);

}  // namespace regatta::worker
