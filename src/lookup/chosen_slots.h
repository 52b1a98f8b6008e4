// Lookups that read some of a plan's slots, or rows without pooling. The plan of a table covers the slots of all
// lookups in it; each lookup takes its own of them, and their gradients are added up for each key. Thread-safety: pure
// functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/pooling.h"
#include "base/step.h"
#include "lookup/key_plan.h"
#include "lookup/pooling.h"

namespace regatta::lookup {

// Of every sample the bags `chosen` of the plan's `slots`, in this order. Each slot is chosen once at most.
struct SlotChoice {
  int slots = 0;
  std::span<const int> chosen;
};

// kSet writes the sums, kAdd adds them to what is there.
enum class Onto : uint8_t { kSet, kAdd };

// As GatherPool: bag chosen[c] of a sample lies at column c * width.
void GatherChosen(const KeyPlan& plan, Pooling pooling, base::RowsView<const float> rows, const SlotChoice& choice,
                  BagMatrix<float> out);

// As MergeGradients, of bags that lie as GatherChosen puts them. A key of no chosen slot gets zeros, or stays.
void MergeChosen(const KeyPlan& plan, Pooling pooling, const SlotChoice& choice, BagMatrix<const float> bags, Onto onto,
                 base::RowsView<float> out);

// The ids of the chosen bags.
int64_t CountIds(const KeyPlan& plan, const SlotChoice& choice);

// Rows without pooling: value × row of every id, sample by sample, in each the bags as chosen, in each the ids in
// order. `out` is CountIds rows of rows.width; bag c of sample s holds rows [offsets[i], offsets[i + 1]), i = s *
// chosen + c.
void GatherRows(const KeyPlan& plan, base::RowsView<const float> rows, const SlotChoice& choice, float* out,
                std::span<int64_t> offsets);

// out.row(u) = sum over the occurrences of key u of value × its row's gradient, in the order of GatherRows.
void MergeRows(const KeyPlan& plan, const SlotChoice& choice, const float* grads, Onto onto, base::RowsView<float> out);

}  // namespace regatta::lookup
