#include "train/pull_stage.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lookup/chosen_slots.h"
#include "lookup/pooling.h"

namespace regatta::train {

PullStage::PullStage(const NetSpec& spec, const LookupLayout& layout, Stepper& stepper, metrics::Tracer* tracer)
    : spec_(spec), layout_(layout), stepper_(stepper), tracer_(tracer) {
  for (const ParameterSpec& parameter : spec.dense) {
    parameter_offsets_.push_back(dense_size_);
    parameters_.push_back(base::TensorView::Of(static_cast<const float*>(nullptr), parameter.shape));
    dense_size_ += parameter.count();
  }
  keys_.resize(layout.tables.size());
  buffers_.resize(spec.lookups.size());
  offsets_.resize(spec.lookups.size());
  lookups_.resize(spec.lookups.size());
  offset_views_.resize(spec.lookups.size());
}

std::span<const base::TableKeys> PullStage::KeysOf(const PlannedBatch& planned) {
  for (size_t t = 0; t < keys_.size(); ++t)
    keys_[t] = planned.plans[static_cast<size_t>(layout_.tables[t].slot_set)].For(static_cast<int>(t));
  return keys_;
}

absl::Status PullStage::Prefetch(const PlannedBatch& planned, const StepPlace& place) {
  return stepper_.Prefetch(place, KeysOf(planned));
}

absl::Status PullStage::Run(const PlannedBatch& planned) {
  if (!checked_) RETURN_IF_ERROR(CheckWidths());
  ASSIGN_OR_RETURN(const base::StepRows rows, stepper_.Pull(KeysOf(planned)));
  rows_ = rows.tables;
  metrics::TraceSpan span(tracer_, "gather");
  for (size_t i = 0; i < lookups_.size(); ++i) Fill(i, planned);
  return Bind(rows.dense);
}

// Once: tables do not change their widths.
absl::Status PullStage::CheckWidths() {
  const std::vector<comm::RowWidths> widths = stepper_.widths();
  if (widths.size() < layout_.tables.size())
    return absl::InternalError(
        absl::StrCat("the job has ", widths.size(), " sparse tables, and the model reads ", layout_.tables.size()));
  for (size_t t = 0; t < layout_.tables.size(); ++t)
    if (const LookupLayout::Table& table = layout_.tables[t]; widths[t].pull != table.dim)
      return absl::InternalError(absl::StrCat("table ", table.name, " gives rows of ", widths[t].pull,
                                              " floats, and the model reads ", table.dim));
  checked_ = true;
  return absl::OkStatus();
}

float* PullStage::Room(size_t lookup, int64_t floats) {
  base::RawVector<float>& buffer = buffers_[lookup];
  if (const auto need = static_cast<size_t>(floats); buffer.size() < need) {
    buffer.clear();  // nothing of the smaller one is worth a copy
    buffer.resize(need);
  }
  return buffer.data();
}

void PullStage::Fill(size_t lookup, const PlannedBatch& planned) {
  const data::Batch& batch = *planned.batch;
  const LookupSpec& spec = spec_.lookups[lookup];
  const LookupLayout::Lookup& place = layout_.lookups[lookup];
  const auto table = static_cast<size_t>(place.table), set = static_cast<size_t>(layout_.tables[table].slot_set);
  const lookup::KeyPlan& plan = planned.plans[set];
  if (spec.pooling == base::Pooling::kNone) return FillRows(lookup, plan, batch.size);
  const int64_t width = spec_.width(static_cast<int>(lookup));
  const auto columns = static_cast<int>(place.chosen.size());
  float* const out = Room(lookup, batch.size * width);
  lookups_[lookup] = base::TensorView::Matrix(out, batch.size, width);
  if (place.whole) {
    lookup::GatherPool(plan, spec.pooling, rows_[table], {out, width, columns});
  } else {
    const auto slots = static_cast<int>(layout_.slot_sets[set].size());
    lookup::GatherChosen(plan, spec.pooling, rows_[table], {slots, place.chosen}, {out, width, columns});
  }
  if (spec.dense_columns == DenseColumns::kApart) return;
  const int64_t first = int64_t{columns} * spec.dim;
  for (int sample = 0; sample < batch.size; ++sample)
    std::memcpy(out + sample * width + first, batch.dense.data() + int64_t{sample} * batch.dense_dim,
                sizeof(float) * static_cast<size_t>(batch.dense_dim));
}

void PullStage::FillRows(size_t lookup, const lookup::KeyPlan& plan, int samples) {
  const LookupLayout::Lookup& place = layout_.lookups[lookup];
  const auto table = static_cast<size_t>(place.table), set = static_cast<size_t>(layout_.tables[table].slot_set);
  const lookup::SlotChoice choice{static_cast<int>(layout_.slot_sets[set].size()), place.chosen};
  const int64_t ids = lookup::CountIds(plan, choice), dim = spec_.lookups[lookup].dim;
  float* const out = Room(lookup, std::max<int64_t>(ids, 1) * dim);
  std::vector<int64_t>& offsets = offsets_[lookup];
  offsets.resize(static_cast<size_t>(samples) * place.chosen.size() + 1);
  lookup::GatherRows(plan, rows_[table], choice, out, offsets);
  lookups_[lookup] = base::TensorView::Matrix(out, ids, dim);
  offset_views_[lookup] = base::TensorView::Of(offsets.data(), std::array{static_cast<int64_t>(offsets.size())});
}

// The parameters are used where the communicator has them, without a copy.
absl::Status PullStage::Bind(std::span<const float> dense) {
  if (dense.size() != static_cast<size_t>(dense_size_))
    return absl::InternalError(
        absl::StrCat("the dense table has ", dense.size(), " floats, and the model reads ", dense_size_));
  for (size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].data = const_cast<float*>(dense.data()) + parameter_offsets_[i];
  return absl::OkStatus();
}

}  // namespace regatta::train
