// Local mode: the tables are in the process. With one thread a run is bitwise reproducible and the dense parameters
// are used in place; with more each step sees a snapshot of the dense parameters, and updates are applied whole, one
// after the other.
// Thread-safety: as Communicator.
#pragma once

#include <memory>
#include <vector>

#include "client/local_client.h"
#include "comm/communicator.h"
#include "comm/row_buffers.h"

namespace regatta::comm {

class Local : public Communicator {
 public:
  Local(client::LocalClient& client, int threads);

  Traits traits() const override { return {}; }
  std::vector<RowWidths> widths() const override { return WidthsOf(client_); }
  absl::Status BeginPass(const base::PassKeys& keys) override;
  absl::Status Prefetch(const base::StepKeys& keys) override;
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override;
  absl::Status Commit(const base::StepGrads& grads) override;
  absl::Status Flush() override;
  absl::Status LeavePass() override { return Flush(); }
  absl::Status EndPass() override { return Flush(); }
  void Abort(const absl::Status&) override {}  // no step waits for another

 private:
  // What a thread's step views; reused by its next step.
  struct Slot {
    RowBuffers rows;
    client::Call call;
    std::vector<float> dense;
  };

  client::LocalClient& client_;
  std::vector<std::unique_ptr<Slot>> slots_;  // a thread each
};

}  // namespace regatta::comm
