// A server's share of a job: its tables, who takes part, in sync the stages of its lanes, and where there is a data_dir
// the journal from which it comes back.
// Thread-safety: all methods are concurrent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "metrics/rate.h"
#include "server/geo_rounds.h"
#include "server/hosted_snapshot.h"
#include "server/job_spec.h"
#include "server/journal.h"
#include "server/push_memory.h"
#include "server/rendezvous.h"
#include "server/roster.h"
#include "server/snapshot_lock.h"
#include "server/sync_stage.h"
#include "server/table_share.h"
#include "server/traffic.h"
#include "server/worker_lane.h"
#include "server/write_gate.h"

namespace regatta::server {

class HostedJob {
 public:
  // `server` is this server's index among spec.lanes.servers.
  static absl::StatusOr<std::unique_ptr<HostedJob>> Create(const JobSpec& spec, int server);
  // Takes tables that are filled already. `journal`, which may be null, outlives the job. Requests that the journal
  // holds from an earlier process of the server, and that `state` does not contain, are replayed first. From then on
  // the job writes to the journal.
  static absl::StatusOr<std::unique_ptr<HostedJob>> Create(const JobSpec& spec, std::unique_ptr<TableShare> tables,
                                                           Journal* journal, const ps::ServerState& state);

  const JobSpec& spec() const { return spec_; }
  int server() const { return tables_->place().server; }
  Roster& roster() { return roster_; }
  const Roster& roster() const { return roster_; }
  Rendezvous& rendezvous() { return rendezvous_; }
  Traffic& traffic() { return traffic_; }
  const Traffic& traffic() const { return traffic_; }
  // Counts keys pulled and pushed. The thread that supervises the job calls Sample and ReleaseAbandonedSnapshot
  // periodically.
  double keys_per_second() const { return keys_.PerSecond(); }
  void Sample() { keys_.Update(traffic_.keys_pulled.value() + traffic_.keys_pushed.value()); }
  void ReleaseAbandonedSnapshot() {
    if (snapshot_.begun()) snapshot_.ReleaseIfAbandoned(roster_.Expected(snapshot_.reader()));
  }

  int sparse_tables() const { return tables_->sparse_tables(); }
  table::SparseTable& sparse(int i) const { return tables_->sparse(i); }
  table::DenseTable& dense() const { return tables_->dense(); }
  uint64_t rows() const { return tables_->rows(); }
  // The virtual shards that this server has.
  wire::Range shards() const;
  const std::optional<LoadedFrom>& loaded() const { return tables_->loaded(); }
  // Null unless the mode stages steps (base/mode.h).
  SyncStage* stage(int lane) const { return stages_.empty() ? nullptr : stages_[static_cast<size_t>(lane)].get(); }

  // Null unless the mode stages rounds.
  GeoRounds* rounds(int lane) const { return rounds_.empty() ? nullptr : rounds_[static_cast<size_t>(lane)].get(); }

  bool durable() const { return journal_ != nullptr; }
  // Whether a new process may replace a worker that died, and continue where it was.
  bool returns() const { return spec_.loss_policy == base::LossPolicy::kAwait; }
  // A worker joins. From then on requests of an earlier process of its rank are refused. Returns where that process
  // ran, or "".
  absl::StatusOr<std::string> Admit(const Identity& worker);
  WorkerLane& worker_lane(int rank, int lane) {
    return worker_lanes_[static_cast<size_t>(rank) * static_cast<size_t>(spec_.lanes.lanes()) +
                         static_cast<size_t>(lane)];
  }
  // The memory that pushes of the rank's process may hold here. Its successor gets a new one.
  std::shared_ptr<PushMemory> push_memory(int rank) const;
  // In bytes, of every worker.
  void LimitPushMemory(uint64_t bytes);

  // A request enters it before it changes tables.
  WriteGate& gate() { return gate_; }
  // Held from the begin of a snapshot of the tables to its end.
  SnapshotLock& snapshot_lock() { return snapshot_lock_; }
  // The snapshot that a checkpoint of the whole job reads.
  HostedSnapshot& snapshot() { return snapshot_; }
  // A request that is about to change the tables of a lane: afterwards it is as safe as the job asks for. Its record in
  // the log; 0 where there is none.
  absl::StatusOr<uint64_t> Log(int lane, const Identity& worker, const grpc::ByteBuffer& request) {
    if (journal_ == nullptr) return 0;
    return journal_->Log(lane, worker, request);
  }
  // Writes all that is known of the job to the journal anew, in so many bytes, and drops what was there before. Durable
  // jobs only.
  absl::StatusOr<uint64_t> CompactJobLog();
  // Pushes that have waited so long for their last frame, while the gate is closed. Their workers send them again.
  void DropHeldPushes(std::chrono::duration<double> age);
  // What belongs to a checkpoint of the tables, while the gate is closed. Durable jobs only.
  ps::ServerState State();
  checkpoint::ModelTables tables() const { return tables_->view(); }
  const ServerPlace& place() const { return tables_->place(); }
  // The job is over for good: no worker will return to it.
  void End();

  // One update of the tables by the gradients of a step.
  absl::Status Apply(const SyncStage::Sum& step);

 private:
  HostedJob(const JobSpec& spec, std::unique_ptr<TableShare> tables);
  absl::Status Restore(const ps::ServerState& state);
  absl::Status Recover(Journal& journal, const ps::ServerState& state);
  absl::Status Replay(Journal& journal, int lane, const ps::LaneState& state);
  static bool MayBeOpen(ps::Verb verb);
  absl::Status CheckOldClear(ps::Verb verb, int lane, uint64_t index, uint64_t changes) const;
  void Fence(const Identity& worker);
  absl::StatusOr<StepImage> Capture(const SyncStage::Sum& sum) const;
  void RecordIn(Journal& journal);

  const JobSpec spec_;
  const std::unique_ptr<TableShare> tables_;
  Roster roster_;
  Rendezvous rendezvous_;
  Traffic traffic_;
  metrics::Rate keys_;
  std::vector<std::unique_ptr<SyncStage>> stages_;  // a lane each, if the mode stages steps
  std::vector<std::unique_ptr<GeoRounds>> rounds_;  // a lane each, if the mode stages rounds
  std::vector<WorkerLane> worker_lanes_;            // [rank][lane]
  mutable base::Mutex push_memory_mu_;
  uint64_t push_memory_limit_ ABSL_GUARDED_BY(push_memory_mu_) = PushMemory::kDefaultLimit;
  std::vector<std::shared_ptr<PushMemory>> push_memory_ ABSL_GUARDED_BY(push_memory_mu_);  // by rank
  WriteGate gate_;
  SnapshotLock snapshot_lock_;
  HostedSnapshot snapshot_;
  Journal* journal_ = nullptr;
};

}  // namespace regatta::server
