// Async: a step is pushed without waiting and applied on arrival; a pull gives the freshest rows. A thread has at most
// `window` pushes that are not acknowledged, which bounds the staleness; with none a step waits until it is applied.
// The dense parameters are exchanged in the background (comm/dense_exchange.h). The first pull of a step takes the rows
// that were fetched ahead for it; further ones of the same step go to the servers. Thread-safety: as Communicator.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "client/ps_client.h"
#include "comm/communicator.h"
#include "comm/dense_exchange.h"
#include "comm/row_buffers.h"

namespace regatta::comm {

class Async : public Communicator {
 public:
  Async(client::PsClient& client, int threads, uint64_t window, const std::optional<Resumed>& resumed = std::nullopt);

  Traits traits() const override { return {.prefetches = window_ > 0}; }
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
  // Rows on their way, or in use by a step.
  struct Fetch {
    RowBuffers rows;
    client::Call call;
    std::optional<uint64_t> step;
    bool taken = false;  // by a pull of the step
  };
  struct Slot {
    Fetch fetches[2];  // the present step's and the next one's
    int present = 0;
    std::vector<std::unique_ptr<client::Call>> pushes;  // a ring of the window
    size_t next_push = 0;
    std::shared_ptr<const std::vector<float>> dense;
  };

  absl::Status Start(Fetch& fetch, const base::StepKeys& keys);

  client::PsClient& client_;
  const uint64_t window_;
  DenseExchange dense_;
  std::vector<std::unique_ptr<Slot>> slots_;  // a thread each
  uint64_t pass_ = 0;
};

}  // namespace regatta::comm
