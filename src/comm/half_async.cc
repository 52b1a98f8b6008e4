#include "comm/half_async.h"

#include <algorithm>

#include "base/learning_rate.h"

namespace regatta::comm {

HalfAsync::HalfAsync(client::PsClient& client, int threads, int merge, uint64_t window,
                     const std::optional<Resumed>& resumed)
    : client_(client),
      dense_(client, {.merge = 1, .window = std::max<uint64_t>(window, 1), .fetch = 1}, resumed),
      group_(std::max(merge, 1), client.dense_size(), BatchGroup::Rates::kOneASum,
             [this](const base::StepGrads& grads) { return Send(grads); }),
      base_step_(resumed.has_value() ? resumed->step : 0) {
  for (int t = 0; t < threads; ++t) slots_.push_back(std::make_unique<Slot>());
  for (uint64_t i = 0; i < std::max<uint64_t>(window, 1); ++i) pushes_.push_back(std::make_unique<client::Call>());
}

absl::Status HalfAsync::BeginPass(const base::PassKeys& keys) {
  pass_ = keys;
  left_ = keys.kind == base::StepKind::kInfer;
  RETURN_IF_ERROR(dense_.Start(keys.kind));
  if (left_) return absl::OkStatus();
  group_.Begin(keys);
  client::Call call;
  client_.BeginPass({keys.learnt.pass, base_step_, keys.kind}, keys.learnt, call);
  return call.Wait();
}

absl::Status HalfAsync::Prefetch(const base::StepKeys&) { return absl::OkStatus(); }

absl::Status HalfAsync::Pull(const base::StepKeys& keys, base::StepRows* rows) {
  client::StepTag tag{pass_.learnt.pass, keys.step, keys.kind};
  if (keys.kind == base::StepKind::kTrain) {
    const uint64_t group = group_.GroupOf(keys.step);
    RETURN_IF_ERROR(group_.Await(group));
    tag.step = base_step_ + group;  // as its push will say: so the servers can tell how stale that is
  }
  Slot& slot = *slots_[static_cast<size_t>(keys.thread)];
  client_.Pull(tag, keys.tables, slot.rows.Reserve(client_, keys.tables), slot.pull);
  slot.dense = dense_.Latest();
  RETURN_IF_ERROR(slot.pull.Wait());
  rows->tables = slot.rows.views();
  rows->dense = *slot.dense;
  return absl::OkStatus();
}

absl::Status HalfAsync::Commit(const base::StepGrads& grads) {
  RETURN_IF_ERROR(base::CheckLearningRates(grads));
  return group_.Add(grads);
}

absl::Status HalfAsync::Send(const base::StepGrads& grads) {
  client::Call& call = *pushes_[next_push_];
  next_push_ = (next_push_ + 1) % pushes_.size();
  RETURN_IF_ERROR(call.Wait());  // of the push a window ago
  base::StepGrads step = grads;
  step.step += base_step_;
  step.pass = pass_.learnt.pass;
  client_.Push(step, call);
  return dense_.Add(step);
}

absl::Status HalfAsync::LeavePass() {
  if (left_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t groups, group_.End());
  base_step_ += groups;
  left_ = true;
  return Flush();
}

absl::Status HalfAsync::Flush() {
  absl::Status status;
  for (const auto& call : pushes_)
    if (absl::Status s = call->Wait(); !s.ok() && status.ok()) status = s;
  RETURN_IF_ERROR(status);
  return dense_.Finish();
}

}  // namespace regatta::comm
