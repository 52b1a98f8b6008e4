#include "comm/async.h"

#include <algorithm>

#include "base/learning_rate.h"

namespace regatta::comm {
namespace {

// Of few threads, too, the dense gradients of some steps are merged: a server's time goes to them otherwise.
constexpr uint64_t kMergedSteps = 4;

}  // namespace

Async::Async(client::PsClient& client, int threads, uint64_t window, const std::optional<Resumed>& resumed)
    : client_(client),
      window_(window),
      dense_(client,
             {.merge = window == 0 ? 1 : std::max(static_cast<uint64_t>(threads), std::min(window, kMergedSteps)),
              .window = std::max<uint64_t>(window, 1) * static_cast<uint64_t>(threads),
              .fetch = std::max<uint64_t>(window, 1) * static_cast<uint64_t>(threads)},
             resumed) {
  for (int t = 0; t < threads; ++t) {
    auto slot = std::make_unique<Slot>();
    for (uint64_t i = 0; i < std::max<uint64_t>(window, 1); ++i)
      slot->pushes.push_back(std::make_unique<client::Call>());
    slots_.push_back(std::move(slot));
  }
}

absl::Status Async::BeginPass(const base::PassKeys& keys) {
  pass_ = keys.learnt.pass;
  for (const auto& slot : slots_) {
    for (Fetch& fetch : slot->fetches) {
      RETURN_IF_ERROR(fetch.call.Wait());
      fetch.step.reset();
    }
  }
  RETURN_IF_ERROR(dense_.Start(keys.kind));
  if (keys.kind == base::StepKind::kInfer) return absl::OkStatus();
  client::Call call;
  client_.BeginPass({keys.learnt.pass, 0, keys.kind}, keys.learnt, call);
  return call.Wait();
}

// At most one step ahead: with the pushes under way, a pull is stale by that much more.
absl::Status Async::Prefetch(const base::StepKeys& keys) {
  if (keys.kind == base::StepKind::kInfer) return absl::OkStatus();
  Slot& slot = *slots_[static_cast<size_t>(keys.thread)];
  Fetch& next = slot.fetches[slot.present ^ 1];
  return Start(next, keys);
}

absl::Status Async::Start(Fetch& fetch, const base::StepKeys& keys) {
  RETURN_IF_ERROR(fetch.call.Wait());  // of rows that were not used
  fetch.step = keys.step;
  fetch.taken = false;
  client_.Pull({pass_, keys.step, keys.kind}, keys.tables, fetch.rows.Reserve(client_, keys.tables), fetch.call);
  return absl::OkStatus();
}

absl::Status Async::Pull(const base::StepKeys& keys, base::StepRows* rows) {
  Slot& slot = *slots_[static_cast<size_t>(keys.thread)];
  // The trainer has announced the step after this one already: this one's rows are in the present place.
  Fetch& fetch = slot.fetches[slot.present];
  if (fetch.step != keys.step || fetch.taken) RETURN_IF_ERROR(Start(fetch, keys));
  fetch.taken = true;
  slot.dense = dense_.Latest();
  RETURN_IF_ERROR(fetch.call.Wait());
  rows->tables = fetch.rows.views();
  rows->dense = *slot.dense;
  return absl::OkStatus();
}

absl::Status Async::Commit(const base::StepGrads& grads) {
  RETURN_IF_ERROR(base::CheckLearningRates(grads));
  Slot& slot = *slots_[static_cast<size_t>(grads.thread)];
  slot.fetches[slot.present].step.reset();
  slot.present ^= 1;
  client::Call& call = *slot.pushes[slot.next_push];
  slot.next_push = (slot.next_push + 1) % slot.pushes.size();
  RETURN_IF_ERROR(call.Wait());  // of the step a window ago
  client_.Push(grads, call);
  RETURN_IF_ERROR(dense_.Add(grads));
  if (window_ > 0) return absl::OkStatus();
  RETURN_IF_ERROR(call.Wait());
  return dense_.Finish();
}

absl::Status Async::Flush() {
  absl::Status status;
  for (const auto& slot : slots_)
    for (const auto& call : slot->pushes)
      if (absl::Status s = call->Wait(); !s.ok() && status.ok()) status = s;
  RETURN_IF_ERROR(status);
  return dense_.Finish();
}

}  // namespace regatta::comm
