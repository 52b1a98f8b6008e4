#include "comm/step_copy.h"

#include <algorithm>

namespace regatta::comm {

void StepCopy::Assign(const base::StepGrads& grads, int64_t dense_size) {
  batch_ = grads.batch;
  samples_ = grads.samples;
  storage_.resize(grads.tables.size());
  tables_.resize(grads.tables.size());
  for (size_t i = 0; i < grads.tables.size(); ++i) {
    const base::TableGrads& from = grads.tables[i];
    Table& to = storage_[i];
    to.keys.assign(from.keys.keys.begin(), from.keys.keys.end());
    to.shard_begin.assign(from.keys.shard_begin.begin(), from.keys.shard_begin.end());
    const auto width = static_cast<size_t>(from.grads.width);
    to.rows.resize(to.keys.size() * width);
    for (size_t k = 0; k < to.keys.size(); ++k)
      std::copy_n(from.grads.row(static_cast<int64_t>(k)), width, to.rows.data() + k * width);
    tables_[i] = {};
    tables_[i].keys = {from.keys.table, to.keys, to.shard_begin};
    tables_[i].grads = {to.rows.data(), from.grads.width, from.grads.width};
    tables_[i].learning_rate = from.learning_rate;
  }
  dense_.assign(static_cast<size_t>(grads.dense.empty() ? 0 : dense_size), 0.0f);
  for (const base::DenseGrad& piece : grads.dense)
    std::copy(piece.values.begin(), piece.values.end(), dense_.begin() + piece.offset);
  dense_learning_rate_ = grads.dense_learning_rate;
}

}  // namespace regatta::comm
