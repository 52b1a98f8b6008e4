#include "binding/lookup_call.h"

#include <algorithm>
#include <array>

#include "lookup/chosen_slots.h"
#include "lookup/pooling.h"

namespace regatta::binding {
namespace {

constexpr std::array<int, 1> kOneSlot = {0};
const lookup::SlotChoice kWhole{1, kOneSlot};

}  // namespace

LookupCall::LookupCall(int table, base::Pooling pooling, const lookup::Bags& bags) : table_(table), pooling_(pooling) {
  thread_local lookup::Planner planner;
  planner.Plan(bags, plan_);
}

void LookupCall::Gather(base::RowsView<const float> rows, float* out) const {
  if (pooling_ == base::Pooling::kNone) {
    std::vector<int64_t> offsets(plan_.offsets.size());
    lookup::GatherRows(plan_, rows, kWhole, out, offsets);
    return;
  }
  lookup::GatherPool(plan_, pooling_, rows, {out, rows.width, 1});
}

void LookupCall::Merge(const float* grad, int width, float* out) const {
  const base::RowsView<float> merged{out, width, width};
  if (pooling_ == base::Pooling::kNone) {
    lookup::MergeRows(plan_, kWhole, grad, lookup::Onto::kSet, merged);
    return;
  }
  lookup::MergeGradients(plan_, pooling_, {grad, width, 1}, merged);
}

void LookupCall::MergeWeights(base::RowsView<const float> rows, const float* grad, float* out) const {
  const auto width = static_cast<size_t>(rows.width);
  for (size_t bag = 0; bag + 1 < plan_.offsets.size(); ++bag) {
    const float* const g = grad + bag * width;
    for (uint32_t p = plan_.offsets[bag]; p < plan_.offsets[bag + 1]; ++p) {
      const float* const row = rows.row(plan_.row_of[p]);
      float sum = 0;
      for (size_t j = 0; j < width; ++j) sum += row[j] * g[j];
      out[p] = sum;
    }
  }
}

}  // namespace regatta::binding
