// The epoch whose validation was the best so far, as saves carry it and workers tell it to each other.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/run_state.h"
#include "run/rounds.pb.h"

namespace regatta::run {

struct BestEpoch {
  uint64_t epoch = 0;
  double score = 0;  // AUC, or −loss where AUC is undefined
};

// As a round carries it. Message is one that has a field `best`.
template <typename Message>
void PutBest(const std::optional<BestEpoch>& best, Message& message) {
  if (!best.has_value()) return;
  message.mutable_best()->set_epoch(best->epoch);
  message.mutable_best()->set_score(best->score);
}
template <typename Message>
std::optional<BestEpoch> BestFrom(const Message& message) {
  if (!message.has_best()) return std::nullopt;
  return BestEpoch{message.best().epoch(), message.best().score()};
}

// As a save has it.
void PutBest(const std::optional<BestEpoch>& best, checkpoint::RunState& run);
std::optional<BestEpoch> BestFrom(const checkpoint::RunState& run);

}  // namespace regatta::run
