#include "train/push_stage.h"

#include <algorithm>
#include <cmath>

#include "lookup/pooling.h"

namespace regatta::train {
namespace {

void AddL2(double scale, base::RowsView<const float> rows, size_t count, base::RawVector<float>& merged) {
  for (size_t u = 0; u < count; ++u)
    for (int j = 0; j < rows.width; ++j) merged[u * rows.width + j] += static_cast<float>(scale) * rows.row(u)[j];
}

size_t LargestParameter(const NetSpec& spec) {
  int64_t count = 0;
  for (const ParameterSpec& parameter : spec.dense) count = std::max(count, parameter.count());
  return static_cast<size_t>(count);
}

double SquaredNorm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return sum;
}

}  // namespace

PushStage::PushStage(const NetSpec& spec, const LookupLayout& layout, Stepper& stepper, double clip_by_norm,
                     metrics::Tracer* tracer)
    : spec_(spec), layout_(layout), stepper_(stepper), clip_by_norm_(clip_by_norm), tracer_(tracer) {
  merged_.resize(layout.tables.size());
  tables_.resize(layout.tables.size());
}

absl::Status PushStage::Run(const PlannedBatch& planned, const PullStage& pulled, const NetGrads& grads) {
  if (!checked_) RETURN_IF_ERROR(CheckWidths());
  const auto samples = static_cast<uint32_t>(planned.batch->size);
  {
    metrics::TraceSpan span(tracer_, "merge");
    Merge(planned, pulled, grads);
    CollectDense(pulled, grads);
    if (clip_by_norm_ > 0) ClipDense(samples);
  }
  return stepper_.Commit(samples, tables_, dense_);
}

// Once, and behind a pull, which has looked how many tables there are.
absl::Status PushStage::CheckWidths() {
  const std::vector<comm::RowWidths> widths = stepper_.widths();
  for (size_t t = 0; t < layout_.tables.size(); ++t)
    if (const LookupLayout::Table& table = layout_.tables[t]; widths[t].push != table.dim)
      return absl::InternalError(absl::StrCat("table ", table.name, " takes gradients of ", widths[t].push,
                                              " floats, and the model makes them of ", table.dim));
  checked_ = true;
  return absl::OkStatus();
}

void PushStage::Merge(const PlannedBatch& planned, const PullStage& pulled, const NetGrads& grads) {
  for (size_t t = 0; t < layout_.tables.size(); ++t) {
    const LookupLayout::Table& table = layout_.tables[t];
    const lookup::KeyPlan& plan = planned.plans[static_cast<size_t>(table.slot_set)];
    base::RawVector<float>& merged = merged_[t];
    const size_t need = plan.keys.size() * static_cast<size_t>(table.dim);
    if (merged.size() < need) merged.resize(need + need / 8);
    auto onto = lookup::Onto::kSet;
    for (const int lookup : table.lookups) {
      const base::TensorView& grad = grads.lookups[static_cast<size_t>(lookup)];
      if (grad.empty()) continue;  // the loss does not depend on this lookup
      AddLookup(static_cast<size_t>(lookup), planned, grad, onto);
      onto = lookup::Onto::kAdd;
    }
    if (onto == lookup::Onto::kSet) std::fill_n(merged.begin(), need, 0.0f);
    if (table.l2 > 0) AddL2(table.l2 * planned.batch->size, pulled.rows()[t], plan.keys.size(), merged);
    tables_[t] = {.keys = plan.For(static_cast<int>(t)),
                  .grads = {merged.data(), table.dim, table.dim},
                  .slot = {},
                  .show = {},
                  .click = {}};
  }
}

// Puts the gradient of one lookup into its table's.
void PushStage::AddLookup(size_t lookup, const PlannedBatch& planned, const base::TensorView& grad, lookup::Onto onto) {
  const LookupSpec& spec = spec_.lookups[lookup];
  const LookupLayout::Lookup& place = layout_.lookups[lookup];
  const auto table = static_cast<size_t>(place.table), set = static_cast<size_t>(layout_.tables[table].slot_set);
  const lookup::KeyPlan& plan = planned.plans[set];
  const lookup::SlotChoice choice{static_cast<int>(layout_.slot_sets[set].size()), place.chosen};
  const base::RowsView<float> out{merged_[table].data(), spec.dim, spec.dim};
  const float* const values = grad.floats().data();
  if (spec.pooling == base::Pooling::kNone) return lookup::MergeRows(plan, choice, values, onto, out);
  const lookup::BagMatrix<const float> bags{values, spec_.width(static_cast<int>(lookup)),
                                            static_cast<int>(place.chosen.size())};
  if (place.whole && onto == lookup::Onto::kSet) return lookup::MergeGradients(plan, spec.pooling, bags, out);
  lookup::MergeChosen(plan, spec.pooling, choice, bags, onto, out);
}

void PushStage::CollectDense(const PullStage& pulled, const NetGrads& grads) {
  dense_.clear();
  for (size_t i = 0; i < grads.parameters.size(); ++i) {
    const auto count = static_cast<size_t>(pulled.parameters()[i].count());
    const base::TensorView& grad = grads.parameters[i];
    if (grad.empty() && zeros_.empty()) zeros_.resize(LargestParameter(spec_));
    dense_.push_back(
        {pulled.parameter_offsets()[i], grad.empty() ? std::span<const float>(zeros_.data(), count) : grad.floats()});
  }
}

// The gradients are the net's: what is scaled is a copy.
void PushStage::ClipDense(uint32_t samples) {
  double square = 0;
  size_t count = 0;
  for (const base::DenseGrad& grad : dense_) {
    square += SquaredNorm(grad.values);
    count += grad.values.size();
  }
  const double norm = std::sqrt(square) / samples;
  if (norm <= clip_by_norm_) return;
  const auto scale = static_cast<float>(clip_by_norm_ / norm);
  clipped_.resize(count);
  float* out = clipped_.data();
  for (base::DenseGrad& grad : dense_) {
    for (size_t i = 0; i < grad.values.size(); ++i) out[i] = grad.values[i] * scale;
    grad.values = {out, grad.values.size()};
    out += grad.values.size();
  }
}

}  // namespace regatta::train
