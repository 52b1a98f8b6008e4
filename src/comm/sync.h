// Sync: a step of the job is one batch of every thread of every worker. The servers add all gradients of a step and
// update once; a pull sees every earlier step and no later one. For a fixed number of workers and threads the result
// does not depend on timing, on the number of servers or lanes. A step has one learning rate for a table: batches or
// workers that bring different ones for it fail.
// Thread-safety: as Communicator.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "client/ps_client.h"
#include "comm/agree.h"
#include "comm/batch_group.h"
#include "comm/communicator.h"
#include "comm/resumed.h"
#include "comm/row_buffers.h"

namespace regatta::comm {

class Sync : public Communicator {
 public:
  // `first_step` is the servers' next step: 0, or where a resumed run goes on.
  Sync(client::PsClient& client, Agree agree, int threads, uint64_t first_step,
       const std::optional<Resumed>& resumed = std::nullopt);

  Traits traits() const override { return {.batches_a_push = group_.size()}; }
  std::vector<RowWidths> widths() const override { return WidthsOf(client_); }
  absl::Status BeginPass(const base::PassKeys& keys) override;
  absl::Status Prefetch(const base::StepKeys& keys) override;
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override;
  absl::Status Commit(const base::StepGrads& grads) override;
  absl::Status Flush() override { return pushes_.Wait(); }
  absl::Status LeavePass() override;
  absl::Status EndPass() override;
  void Abort(const absl::Status& status) override { group_.Abort(status); }

 private:
  struct Slot {
    RowBuffers rows;
    client::Call call;
  };
  absl::Status PullDense(const client::StepTag& tag);
  absl::Status Send(const base::StepGrads& grads);

  client::PsClient& client_;
  const Agree agree_;
  const std::optional<Resumed> resumed_;
  std::vector<std::unique_ptr<Slot>> slots_;  // a thread each
  BatchGroup group_;
  client::Call pushes_;
  base::PassKeys pass_;
  bool left_ = true;    // the pass
  uint64_t base_step_;  // the servers' step of group 0

  base::Mutex dense_mu_;
  std::vector<float> dense_;  // of dense_tag_: all threads of a step use the same
  client::StepTag dense_tag_ ABSL_GUARDED_BY(dense_mu_);
  bool dense_valid_ ABSL_GUARDED_BY(dense_mu_) = false;
};

}  // namespace regatta::comm
