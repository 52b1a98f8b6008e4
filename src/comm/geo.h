// Geo: a worker trains on a replica of the rows it meets, with any rule, whose state stays here. At the end of every
// round (GeoSchedule), in the background, and at the end of a pass it sends what it has changed and takes the servers'
// values over. The servers combine the changes of all workers (docs/adr/0013-geo-counts-who-changed-a-row.md).
// Invariant: replica = base + pending, where base is the last value seen on the servers. An exchange sends all of
// pending; what training has changed meanwhile is pending afterwards.
// After an exchange the servers know which batches it spoke of: a process that takes the worker's place goes on there,
// with the servers' values and new state; what was pending is lost.
// Thread-safety: as Communicator.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "client/ps_client.h"
#include "comm/communicator.h"
#include "comm/geo_combine.h"
#include "comm/geo_schedule.h"
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
  uint64_t interval = 400;  // the most batches of this worker between two exchanges
  GeoCombine combine = GeoCombine::kCount;
  table::NanPolicy nan_policy = table::NanPolicy::kSkip;
};

class Geo : public Communicator {
 public:
  static absl::StatusOr<std::unique_ptr<Geo>> Create(client::PsClient& client, const table::ModelConfig& tables,
                                                     const GeoOptions& options);
  ~Geo() override;

  Traits traits() const override { return {}; }
  std::vector<RowWidths> widths() const override;
  absl::Status BeginPass(const base::PassKeys& keys) override;
  absl::Status Prefetch(const base::StepKeys& keys) override;
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override;
  absl::Status Commit(const base::StepGrads& grads) override;
  absl::Status Flush() override;
  absl::Status LeavePass() override;
  absl::Status EndPass() override { return LeavePass(); }
  void Abort(const absl::Status&) override {}  // no step waits for another

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
  // What an exchange is about.
  struct Learnt {
    base::DataPosition position;  // batches that the replica has
    client::Rounds rounds;        // that they were learnt in, since the last exchange
    bool any = false;             // whether there was a batch since then
  };
  enum class Extent : uint8_t { kRound, kAll };
  Geo(client::PsClient& client, const GeoOptions& options)
      : client_(client), options_(options), schedule_(options.interval) {}

  absl::Status Fetch(Replica& replica, const base::TableKeys& keys);
  // Up to the last round that is whole, or all that there is.
  absl::Status Exchange(Extent extent);
  Learnt TakeLearnt(Extent extent);
  absl::Status TellLearnt(const base::DataPosition& learnt);
  // Sends what is pending of these rows; without `rounds` only takes the servers' values over.
  absl::Status ExchangeRows(int table, std::span<const base::Key> keys, const std::optional<client::Rounds>& rounds);
  absl::Status ExchangeDense(const std::optional<client::Rounds>& rounds);
  // The factor of what is sent, and sends it.
  float share() const {
    return options_.combine == GeoCombine::kMean ? 1.0f / static_cast<float>(options_.workers) : 1;
  }
  void Send(const client::Rounds& rounds, const base::TableGrads& differences, client::Call& call);
  void SendDense(const client::Rounds& rounds, std::span<const float> differences, client::Call& call);
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
  GeoSchedule schedule_ ABSL_GUARDED_BY(mu_);
  bool due_ ABSL_GUARDED_BY(mu_) = false;            // a round has ended since the last exchange began
  bool changed_since_ ABSL_GUARDED_BY(mu_) = false;  // a batch was learnt since then
  uint64_t exchanged_ ABSL_GUARDED_BY(mu_) = 0;      // the last round of the pass that an exchange spoke of
  base::DataPosition learnt_ ABSL_GUARDED_BY(mu_);   // batches that the replica has
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace regatta::comm
