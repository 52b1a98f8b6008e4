#include "binding/lookup_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lookup/chosen_slots.h"
#include "lookup/pooling.h"

namespace regatta::binding {
namespace {

constexpr std::array<int, 1> kOneSlot = {0};
const lookup::SlotChoice kWhole{1, kOneSlot};

// A thread's planner, and the plans of lookups that are over: a plan takes megabytes, which the system would clear
// again for each step.
struct Plans {
  lookup::Planner planner;
  std::vector<lookup::KeyPlan> spare;
};
constexpr size_t kSpare = 8;  // a step's lookups, and the next one's
thread_local Plans plans;

}  // namespace

LookupCall::LookupCall(int table, base::Pooling pooling, const lookup::Bags& bags) : table_(table), pooling_(pooling) {
  if (!plans.spare.empty()) {
    plan_ = std::move(plans.spare.back());
    plans.spare.pop_back();
  }
  plans.planner.Plan(bags, plan_);
}

LookupCall::~LookupCall() {
  if (plans.spare.size() < kSpare) plans.spare.push_back(std::move(plan_));
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
