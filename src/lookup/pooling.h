// Gather-and-pool and scatter-and-merge over a plan: rows of distinct keys to bags, bag gradients to one gradient a
// key. Thread-safety: pure functions.
#pragma once

#include "base/pooling.h"
#include "base/step.h"
#include "lookup/key_plan.h"

namespace regatta::lookup {

using base::Pooling;

// The bags of a sample lie side by side in one row of a matrix: bag (sample, slot) at row sample, column slot * width.
template <typename T>
struct BagMatrix {
  T* data = nullptr;
  int64_t stride = 0;  // elements from one sample to the next
  int slots = 0;
};

// `pooling` is not kNone (lookup/chosen_slots.h). Each bag of `out` = sum over its ids of value × row, divided as the
// pooling says. An empty bag is zeros.
void GatherPool(const KeyPlan& plan, Pooling pooling, base::RowsView<const float> rows, BagMatrix<float> out);

// out.row(u) = sum over the occurrences of key u of value × the bag's gradient, bags ascending. Each
// bag's gradient is divided as the bag was.
void MergeGradients(const KeyPlan& plan, Pooling pooling, BagMatrix<const float> bags, base::RowsView<float> out);

}  // namespace regatta::lookup
