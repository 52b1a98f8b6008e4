// One call of an embedding module: which distinct keys it reads, and where each occurs.
// Thread-safety: constant after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/pooling.h"
#include "base/step.h"
#include "lookup/key_plan.h"

namespace regatta::binding {

class LookupCall {
 public:
  // `bags` has offsets of each bag's first id and the number of ids at the end.
  LookupCall(int table, base::Pooling pooling, const lookup::Bags& bags);
  ~LookupCall();
  LookupCall(const LookupCall&) = delete;
  LookupCall& operator=(const LookupCall&) = delete;

  int table() const { return table_; }
  base::Pooling pooling() const { return pooling_; }
  int64_t bags() const { return static_cast<int64_t>(plan_.offsets.size()) - 1; }
  int64_t keys() const { return static_cast<int64_t>(plan_.keys.size()); }
  int64_t ids() const { return static_cast<int64_t>(plan_.row_of.size()); }
  const lookup::KeyPlan& plan() const { return plan_; }
  base::TableKeys table_keys() const { return plan_.For(table_); }

  // `out` is [bags, width], or [ids, width] without pooling.
  void Gather(base::RowsView<const float> rows, float* out) const;
  // The gradient of `out` to one of each key: [keys, width].
  void Merge(const float* grad, int width, float* out) const;
  // The gradient of the ids' weights, of sums: the row of each id times its bag's gradient.
  void MergeWeights(base::RowsView<const float> rows, const float* grad, float* out) const;

 private:
  const int table_;
  const base::Pooling pooling_;
  lookup::KeyPlan plan_;
};

}  // namespace regatta::binding
