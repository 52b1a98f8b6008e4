#include "comm/local.h"

namespace regatta::comm {

Local::Local(client::LocalClient& client, int threads) : client_(client), slots_(threads) {}

absl::Status Local::BeginPass(const base::PassKeys&) { return absl::OkStatus(); }

// Rows are a memory access away, and a pull before the last commit would change the result: there is nothing to start.
absl::Status Local::Prefetch(const base::StepKeys&) { return absl::OkStatus(); }

absl::Status Local::Pull(const base::StepKeys& keys, base::StepRows* rows) {
  Slot& slot = slots_[keys.thread];
  slot.rows.resize(keys.tables.size());
  slot.views.resize(keys.tables.size());
  for (size_t i = 0; i < keys.tables.size(); ++i) {
    const base::TableKeys& table = keys.tables[i];
    const int width = client_.pull_width(table.table);
    const size_t need = table.keys.size() * width;
    if (slot.rows[i].size() < need) slot.rows[i].resize(need + need / 8);
    RETURN_IF_ERROR(client_.PullRows(table, keys.kind, {slot.rows[i].data(), width, width}));
    slot.views[i] = {slot.rows[i].data(), width, width};
  }
  rows->tables = slot.views;
  if (slots_.size() == 1) {
    rows->dense = client_.LiveDense();
    return absl::OkStatus();
  }
  slot.dense.resize(client_.dense_size());
  rows->dense = slot.dense;
  return client_.PullDense(slot.dense);
}

absl::Status Local::Commit(const base::StepGrads& grads) { return client_.Push(grads); }

absl::Status Local::Flush() { return absl::OkStatus(); }

}  // namespace regatta::comm
