// Where a run was when it was saved: all that a resume needs besides the tables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/step.h"
#include "checkpoint/model_identity.h"

namespace regatta::checkpoint {

enum class EpochState : uint8_t { kRunning, kFinished };

struct RunState {
  uint64_t epoch = 0;
  EpochState epoch_state = EpochState::kRunning;
  base::DataPosition position = {};
  uint64_t step = 0;           // steps committed since the run began; the schedule's argument
  uint32_t lane_count = 1;     // fixed per job
  uint64_t settings_hash = 0;  // of all that decides which batch is batch k: seed, batch size, files, split
  std::optional<ModelIdentity> model = {};        // none: the save does not say
  std::map<std::string, std::string> blobs = {};  // named bytes, e.g. the state of the metrics

  uint64_t FinishedEpochs() const { return epoch + (epoch_state == EpochState::kFinished ? 1 : 0); }
  friend bool operator==(const RunState&, const RunState&) = default;
};

}  // namespace regatta::checkpoint
