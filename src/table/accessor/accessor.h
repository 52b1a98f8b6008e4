// An accessor says what a row consists of: how wide a pull, a push and a row are, which columns a push brings beside
// the gradients, how a row is created, read and updated. Tables ask it; no other code knows a "dim".
// Thread-safety: constant after construction; rows are guarded by the lock that their caller holds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/key.h"
#include "base/status.h"
#include "base/step.h"
#include "table/rule/rule.h"
#include "table/table_config.h"

namespace regatta::table {

// Columns of a push beside its gradients.
struct PushColumns {
  bool slot = false;
  bool show = false;
  bool click = false;
};

// Rows of a pull: rows[i] is the row of keys[i] or null, out.row(i) where it goes.
struct PullBlock {
  std::span<const base::Key> keys;
  float* const* rows = nullptr;
  base::StepKind kind = base::StepKind::kTrain;
  base::RowsView<float> out;
};

// Rows of a push; a null row is left out, one whose bit is set in `created` is uninitialised.
struct PushBlock {
  std::span<const base::Key> keys;
  uint64_t created = 0;
  RowUpdate update;  // dim is the accessor's to set
  std::span<const uint32_t> slot;
  std::span<const float> show;
  std::span<const float> click;
};

class Accessor {
 public:
  virtual ~Accessor() = default;
  virtual int pull_width() const = 0;
  virtual int push_width() const = 0;
  virtual int row_width() const = 0;  // floats stored: weights, then state
  virtual PushColumns columns() const = 0;
  virtual double learning_rate() const = 0;  // what the schedule starts from
  virtual void Pull(const PullBlock& block) const = 0;
  virtual void Push(const PushBlock& block) const = 0;
  // Adds block.update.grads to what a pull gives of each row; its state stays as it is.
  virtual void Add(const PushBlock& block) const = 0;
  // Puts block.update.grads in place of what a pull gives of each row; its state stays as it is.
  virtual void Assign(const PushBlock& block) const = 0;
};

}  // namespace regatta::table
