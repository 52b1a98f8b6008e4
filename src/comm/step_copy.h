// All that a step learnt, in memory of its own: what must outlive the step's Commit.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/step.h"

namespace regatta::comm {

class StepCopy {
 public:
  void Assign(const base::StepGrads& grads, int64_t dense_size);

  uint64_t batch() const { return batch_; }
  uint32_t samples() const { return samples_; }
  const std::vector<base::TableGrads>& tables() const { return tables_; }  // views of this copy
  const std::vector<float>& dense() const { return dense_; }
  std::optional<float> dense_learning_rate() const { return dense_learning_rate_; }

 private:
  struct Table {
    std::vector<base::Key> keys;
    std::vector<uint32_t> shard_begin;
    std::vector<float> rows;
  };
  uint64_t batch_ = 0;
  uint32_t samples_ = 0;
  std::vector<Table> storage_;
  std::vector<base::TableGrads> tables_;
  std::vector<float> dense_;
  std::optional<float> dense_learning_rate_;
};

}  // namespace regatta::comm
