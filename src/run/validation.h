// The validation of a run's epochs: which one is the best, and whether training goes on. The first worker validates;
// all of them agree on what follows. The best has the highest AUC of the net's first output; if that output is no
// binary one, or a class is missing, the least loss.
//
// An epoch is saved before it is validated, so its save holds the best of the epochs before it. A run that resumes
// after such a save validates the epoch again, and goes on as if it had not been stopped. A process that replaces the
// first worker gets the best epoch from the round of the last validation.
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/status.h"
#include "checkpoint/save_root.h"
#include "data/dataset.h"
#include "run/best_epoch.h"
#include "run/rounds.h"
#include "run/team.h"
#include "train/net_spec.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::run {

struct ValidationParts {
  train::Trainer* trainer = nullptr;     // not null if `dataset` is not
  const train::NetSpec& spec;            // of the net that it runs
  data::Dataset* dataset = nullptr;      // null: nothing is validated; always so but in the first worker
  checkpoint::SaveRoot* root = nullptr;  // where the best epoch is marked; not null if `dataset` is not
  train::Reporter& reporter;
  uint64_t early_stop = 0;      // epochs without a better one after which training ends; 0 = never
  std::function<int()> signal;  // that stops a validation, or 0
};

class Validation {
 public:
  using After = ValidatedMessage::After;  // what follows, for all workers

  // `best` is what an earlier run or process knew, at the first worker.
  Validation(Team& team, const ValidationParts& parts, std::optional<BestEpoch> best)
      : team_(team), parts_(parts), best_(best) {}

  // All workers call it; `epoch` is nothing if there is none to validate. A round that is over is not done again.
  absl::StatusOr<After> Validate(const Round<ValidatedMessage>& round, std::optional<uint64_t> epoch);

  // The first worker's; nothing in the others.
  const std::optional<BestEpoch>& best() const { return best_; }
  // That ended the last validation, here or at the first worker; 0 = none.
  int signal() const { return signal_; }

 private:
  absl::StatusOr<After> ValidateHere(uint64_t epoch);

  Team& team_;
  const ValidationParts parts_;
  std::optional<BestEpoch> best_;
  int signal_ = 0;
};

}  // namespace regatta::run
