#include "lookup/chosen_slots.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/multiversion.h"

namespace regatta::lookup {
namespace {

using base::RowsView;

// What a bag of n ids is multiplied by.
float PoolingScale(Pooling pooling, uint32_t n) {
  switch (pooling) {
    case Pooling::kMean:
      return 1.0f / static_cast<float>(n);
    case Pooling::kSqrtN:
      return 1.0f / std::sqrt(static_cast<float>(n));
    case Pooling::kSum:
    case Pooling::kNone:
      break;
  }
  return 1.0f;
}

size_t SamplesOf(const KeyPlan& plan, const SlotChoice& choice) {
  return (plan.offsets.size() - 1) / static_cast<size_t>(choice.slots);
}

float ValueOf(const KeyPlan& plan, uint32_t id) { return plan.values.empty() ? 1.0f : plan.values[id]; }

// fn(sample, column, begin, end) for every chosen bag, in order.
template <typename Fn>
[[gnu::always_inline]] inline void ForEachBag(const KeyPlan& plan, const SlotChoice& choice, const Fn& fn) {
  const size_t samples = SamplesOf(plan, choice), slots = static_cast<size_t>(choice.slots);
  for (size_t s = 0; s < samples; ++s)
    for (size_t c = 0; c < choice.chosen.size(); ++c) {
      const size_t bag = s * slots + static_cast<size_t>(choice.chosen[c]);
      fn(s, c, plan.offsets[bag], plan.offsets[bag + 1]);
    }
}

void Clear(const KeyPlan& plan, Onto onto, const RowsView<float>& out) {
  if (onto == Onto::kAdd) return;
  for (size_t u = 0; u < plan.keys.size(); ++u) std::fill_n(out.row(static_cast<int64_t>(u)), out.width, 0.0f);
}

inline void AddTimes(const float* from, float scale, int width, float* to) {
  for (int j = 0; j < width; ++j) to[j] += scale * from[j];
}

}  // namespace

REGATTA_MULTIVERSION
void GatherChosen(const KeyPlan& plan, Pooling pooling, RowsView<const float> rows, const SlotChoice& choice,
                  BagMatrix<float> out) {
  const int width = rows.width;
  ForEachBag(plan, choice, [&](size_t sample, size_t column, uint32_t begin, uint32_t end) {
    float* const to = out.data + static_cast<int64_t>(sample) * out.stride + static_cast<int64_t>(column) * width;
    std::fill_n(to, width, 0.0f);
    for (uint32_t p = begin; p < end; ++p) AddTimes(rows.row(plan.row_of[p]), ValueOf(plan, p), width, to);
    if (pooling == Pooling::kSum || end - begin < 2) return;
    const float scale = PoolingScale(pooling, end - begin);
    for (int j = 0; j < width; ++j) to[j] *= scale;
  });
}

REGATTA_MULTIVERSION
void MergeChosen(const KeyPlan& plan, Pooling pooling, const SlotChoice& choice, BagMatrix<const float> bags, Onto onto,
                 RowsView<float> out) {
  Clear(plan, onto, out);
  const int width = out.width;
  ForEachBag(plan, choice, [&](size_t sample, size_t column, uint32_t begin, uint32_t end) {
    const float* const from =
        bags.data + static_cast<int64_t>(sample) * bags.stride + static_cast<int64_t>(column) * width;
    const float scale = end > begin ? PoolingScale(pooling, end - begin) : 0;
    for (uint32_t p = begin; p < end; ++p) AddTimes(from, scale * ValueOf(plan, p), width, out.row(plan.row_of[p]));
  });
}

int64_t CountIds(const KeyPlan& plan, const SlotChoice& choice) {
  int64_t count = 0;
  ForEachBag(plan, choice, [&](size_t, size_t, uint32_t begin, uint32_t end) { count += end - begin; });
  return count;
}

REGATTA_MULTIVERSION
void GatherRows(const KeyPlan& plan, RowsView<const float> rows, const SlotChoice& choice, float* out,
                std::span<int64_t> offsets) {
  int64_t at = 0;
  size_t bags = 0;
  offsets[0] = 0;
  ForEachBag(plan, choice, [&](size_t, size_t, uint32_t begin, uint32_t end) {
    for (uint32_t p = begin; p < end; ++p, ++at) {
      const float value = ValueOf(plan, p);
      const float* const from = rows.row(plan.row_of[p]);
      for (int j = 0; j < rows.width; ++j) out[at * rows.width + j] = value * from[j];
    }
    offsets[++bags] = at;
  });
}

REGATTA_MULTIVERSION
void MergeRows(const KeyPlan& plan, const SlotChoice& choice, const float* grads, Onto onto, RowsView<float> out) {
  Clear(plan, onto, out);
  ForEachBag(plan, choice, [&](size_t, size_t, uint32_t begin, uint32_t end) {
    for (uint32_t p = begin; p < end; ++p, grads += out.width)
      AddTimes(grads, ValueOf(plan, p), out.width, out.row(plan.row_of[p]));
  });
}

}  // namespace regatta::lookup
