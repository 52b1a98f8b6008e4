// Metrics of a batch, and of all batches since the states were set.
// Thread-safety: as ProgramBuilder. Errors begin with the builder's call site.
#pragma once

#include <array>
#include <string>

#include "program/program_builder.h"

namespace regatta::program::layers {

// The share of samples whose label is among the k largest of `input`. `correct` and `total` may be given: they count.
absl::StatusOr<Variable*> Accuracy(ProgramBuilder& builder, Variable* input, Variable* label, int64_t k = 1,
                                   Variable* correct = nullptr, Variable* total = nullptr);

struct AucOptions {
  std::string curve = "ROC";
  int64_t num_thresholds = 4095;
  int64_t slide_steps = 1;  // batches that batch_auc looks back
};

struct Auc {
  Variable* auc = nullptr;        // of all batches
  Variable* batch_auc = nullptr;  // of the last ones
  // batch_stat_pos, batch_stat_neg, stat_pos, stat_neg: persistable int64 counts, "_generated_var_<n>".
  std::array<Variable*, 4> states = {};
};

absl::StatusOr<Auc> AucOf(ProgramBuilder& builder, Variable* input, Variable* label, const AucOptions& options = {});

}  // namespace regatta::program::layers
