// Geo: a worker trains on a replica of the rows it meets, with any rule, whose state stays here; in the background,
// every `interval` steps, it sends a share of what it has learnt and takes the servers' values over.
// Invariant: replica = base + pending, where base is the last value seen on the servers. An exchange sends
// pending / workers; the end of a pass sends all of it, so that then the servers hold the sum of everybody's changes.
// After an exchange the servers know which batches it spoke of: a process that takes the worker's place goes on there,
// with the servers' values and new state; what was pending is lost.
// Thread-safety: as Communicator.
#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "client/ps_client.h"
#include "comm/communicator.h"
#include "comm/key_set.h"
#include "comm/row_buffers.h"
#include "table/dense_table.h"
#include "table/push_options.h"
#include "table/sparse_table.h"
#include "table/table_config.h"

namespace regatta::comm {

struct GeoOptions {
  int threads = 1;
  int workers = 1;
  uint64_t interval = 400;  // steps of this worker between two exchanges
  table::NanPolicy nan_policy = table::NanPolicy::kSkip;
};

class Geo : public Communicator {
 public:
  static absl::StatusOr<std::unique_ptr<Geo>> Create(client::PsClient& client, const table::ModelConfig& tables,
                                                     const GeoOptions& options);
  ~Geo() override;

  absl::Status BeginPass(const base::PassKeys& keys) override;
  absl::Status Prefetch(const base::StepKeys& keys) override;
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override;
  absl::Status Commit(const base::StepGrads& grads) override;
  absl::Status Flush() override;
  absl::Status LeavePass() override;
  absl::Status EndPass() override { return LeavePass(); }

 private:
  struct Replica {
    std::unique_ptr<table::SparseTable> local;
    std::unique_ptr<table::SparseTable> base;  // weights only
    KeySet known;                              // under fetch_mu_
    KeySet touched;                            // under mu_
  };
  struct Slot {
    RowBuffers rows;
    std::vector<float> dense;
  };
  Geo(client::PsClient& client, const GeoOptions& options) : client_(client), options_(options) {}

  absl::Status Fetch(Replica& replica, const base::TableKeys& keys);
  absl::Status Exchange(float share);
  absl::Status TellLearnt(const base::DataPosition& learnt);
  absl::Status ExchangeRows(int table, std::span<const base::Key> keys, float share);
  absl::Status ExchangeDense(float share);
  void Run();

  client::PsClient& client_;
  const GeoOptions options_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::unique_ptr<table::DenseTable> dense_;
  std::vector<float> dense_base_;  // of the thread that exchanges
  std::vector<std::unique_ptr<Slot>> slots_;
  base::StepKind kind_ = base::StepKind::kTrain;
  bool left_ = true;  // the pass

  base::Mutex fetch_mu_;
  base::Mutex exchange_mu_;  // held by whoever exchanges
  base::Mutex mu_;
  base::CondVar changed_;
  uint64_t steps_ ABSL_GUARDED_BY(mu_) = 0;         // since the last exchange began
  base::DataPosition learnt_ ABSL_GUARDED_BY(mu_);  // batches that the replica has
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace regatta::comm
