#include "comm/local.h"

namespace regatta::comm {

Local::Local(client::LocalClient& client, int threads) : client_(client) {
  for (int t = 0; t < threads; ++t) slots_.push_back(std::make_unique<Slot>());
}

absl::Status Local::BeginPass(const base::PassKeys&) { return absl::OkStatus(); }

// Rows are a memory access away, and a pull before the last commit would change the result: there is nothing to start.
absl::Status Local::Prefetch(const base::StepKeys&) { return absl::OkStatus(); }

absl::Status Local::Pull(const base::StepKeys& keys, base::StepRows* rows) {
  Slot& slot = *slots_[static_cast<size_t>(keys.thread)];
  const client::StepTag tag{.step = keys.step, .kind = keys.kind};
  client_.Pull(tag, keys.tables, slot.rows.Reserve(client_, keys.tables), slot.call);
  rows->tables = slot.rows.views();
  if (slots_.size() == 1) {
    rows->dense = client_.LiveDense();
  } else {
    slot.dense.resize(static_cast<size_t>(client_.dense_size()));
    client_.PullDense(tag, slot.dense, slot.call);
    rows->dense = slot.dense;
  }
  return slot.call.Wait();
}

absl::Status Local::Commit(const base::StepGrads& grads) {
  Slot& slot = *slots_[static_cast<size_t>(grads.thread)];
  RETURN_IF_ERROR(client_.Check(grads));
  client_.Push(grads, slot.call);
  client_.PushDense(grads, slot.call);
  return slot.call.Wait();
}

absl::Status Local::Flush() { return absl::OkStatus(); }

}  // namespace regatta::comm
