// Half-async: `merge` consecutive batches of a worker, whichever threads they run on, are added up and pushed as one
// step; a batch pulls when all groups before its own have been pushed. The servers apply on arrival. Of a group whose
// batches bring different learning rates every run with the same ones is a push of its own.
// Thread-safety: as Communicator.
#pragma once

#include <memory>
#include <vector>

#include "client/ps_client.h"
#include "comm/batch_group.h"
#include "comm/communicator.h"
#include "comm/dense_exchange.h"
#include "comm/row_buffers.h"

namespace regatta::comm {

class HalfAsync : public Communicator {
 public:
  HalfAsync(client::PsClient& client, int threads, int merge, uint64_t window,
            const std::optional<Resumed>& resumed = std::nullopt);

  Traits traits() const override { return {.batches_a_push = group_.size()}; }
  std::vector<RowWidths> widths() const override { return WidthsOf(client_); }
  absl::Status BeginPass(const base::PassKeys& keys) override;
  absl::Status Prefetch(const base::StepKeys& keys) override;
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override;
  absl::Status Commit(const base::StepGrads& grads) override;
  absl::Status Flush() override;
  absl::Status LeavePass() override;
  absl::Status EndPass() override { return LeavePass(); }
  void Abort(const absl::Status& status) override { group_.Abort(status); }

 private:
  struct Slot {
    RowBuffers rows;
    client::Call pull;
    std::shared_ptr<const std::vector<float>> dense;
  };
  absl::Status Send(const base::StepGrads& grads);

  client::PsClient& client_;
  DenseExchange dense_;
  std::vector<std::unique_ptr<Slot>> slots_;           // a thread each
  std::vector<std::unique_ptr<client::Call>> pushes_;  // a ring of the window
  size_t next_push_ = 0;                               // of group_'s Send
  BatchGroup group_;
  base::PassKeys pass_;
  bool left_ = true;        // the pass
  uint64_t base_step_ = 0;  // groups of earlier passes
};

}  // namespace regatta::comm
