#include "comm/sync.h"

#include <algorithm>

#include "base/learning_rate.h"

namespace regatta::comm {

Sync::Sync(client::PsClient& client, Agree agree, int threads, uint64_t first_step,
           const std::optional<Resumed>& resumed)
    : client_(client),
      agree_(std::move(agree)),
      resumed_(resumed),
      group_(threads, client.dense_size(), BatchGroup::Rates::kOneAGroup,
             [this](const base::StepGrads& grads) { return Send(grads); }),
      base_step_(resumed.has_value() && resumed->step > 0 ? resumed->step : first_step),
      dense_(static_cast<size_t>(client.dense_size())) {
  for (int t = 0; t < threads; ++t) slots_.push_back(std::make_unique<Slot>());
}

absl::Status Sync::BeginPass(const base::PassKeys& keys) {
  pass_ = keys;
  left_ = keys.kind == base::StepKind::kInfer;
  {
    base::MutexLock lock(dense_mu_);
    dense_valid_ = false;
  }
  if (keys.kind == base::StepKind::kInfer) return absl::OkStatus();
  ASSIGN_OR_RETURN(base_step_, agree_(absl::StrCat("begin of pass ", keys.learnt.pass), base_step_));
  group_.Begin(keys);
  client::Call call;
  client_.BeginPass({keys.learnt.pass, base_step_, keys.kind}, keys.learnt, call);
  if (resumed_.has_value() && resumed_->pass == keys.learnt.pass) base_step_ = std::max(base_step_, resumed_->step);
  return call.Wait();
}

// The rows of a step depend on the step before: there is nothing to fetch ahead.
absl::Status Sync::Prefetch(const base::StepKeys&) { return absl::OkStatus(); }

absl::Status Sync::Pull(const base::StepKeys& keys, base::StepRows* rows) {
  client::StepTag tag{pass_.learnt.pass, 0, keys.kind};
  if (keys.kind == base::StepKind::kTrain) {
    const uint64_t group = group_.GroupOf(keys.step);
    RETURN_IF_ERROR(group_.Await(group));  // a pull that overtook a push would wait for it for ever
    tag.step = base_step_ + group;
  }
  Slot& slot = *slots_[static_cast<size_t>(keys.thread)];
  client_.Pull(tag, keys.tables, slot.rows.Reserve(client_, keys.tables), slot.call);
  const absl::Status dense = PullDense(tag);
  RETURN_IF_ERROR(slot.call.Wait());
  RETURN_IF_ERROR(dense);
  rows->tables = slot.rows.views();
  rows->dense = dense_;
  return absl::OkStatus();
}

// The first thread of a step fetches, the others find it there. Nobody reads the step before any more: its batches
// have all been committed.
absl::Status Sync::PullDense(const client::StepTag& tag) {
  base::MutexLock lock(dense_mu_);
  if (dense_valid_ && dense_tag_.step == tag.step && dense_tag_.kind == tag.kind) return absl::OkStatus();
  client::Call call;
  client_.PullDense(tag, dense_, call);
  RETURN_IF_ERROR(call.Wait());
  dense_tag_ = tag;
  dense_valid_ = true;
  return absl::OkStatus();
}

absl::Status Sync::Commit(const base::StepGrads& grads) {
  RETURN_IF_ERROR(base::CheckLearningRates(grads));
  return group_.Add(grads);
}

absl::Status Sync::Send(const base::StepGrads& grads) {
  RETURN_IF_ERROR(pushes_.Wait());  // of the step before
  base::StepGrads step = grads;
  step.step += base_step_;
  step.pass = pass_.learnt.pass;
  client_.Push(step, pushes_);
  client_.PushDense(step, pushes_);
  return absl::OkStatus();
}

absl::Status Sync::LeavePass() {
  if (left_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t groups, group_.End());
  base_step_ += groups;
  RETURN_IF_ERROR(pushes_.Wait());  // who has left a pass on one lane has pushed all of it on every other
  client_.LeavePass({pass_.learnt.pass, base_step_, pass_.kind}, pushes_);
  left_ = true;
  return pushes_.Wait();
}

absl::Status Sync::EndPass() {
  if (pass_.kind == base::StepKind::kInfer) return absl::OkStatus();
  RETURN_IF_ERROR(LeavePass());
  return agree_(absl::StrCat("end of pass ", pass_.learnt.pass), base_step_).status();
}

}  // namespace regatta::comm
