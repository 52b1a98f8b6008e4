// A PsClient over gRPC: splits every request by lane, sends the parts, puts the replies where they belong.
// Thread-safety: as PsClient; Gather and the rest are concurrent too.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "client/await_servers.h"
#include "client/lane.h"
#include "client/outage_log.h"
#include "client/ps_client.h"
#include "client/resume_point.h"
#include "client/server_address.h"
#include "table/table_config.h"
#include "wire/lanes.h"
#include "wire/ps.grpc.pb.h"

namespace regatta::client {

using WorkerProgress = ps::WorkerProgress;

struct ClientOptions {
  std::vector<ServerAddress> servers;
  ps::WorkerId worker;
  ps::JobSpec job;  // servers, workers and tables_json are filled in
  table::ModelConfig tables;
  ps::Precision precision = ps::FLOAT32;  // of rows, dense parameters and gradients while training
  std::chrono::duration<double> wait_timeout{600};
  std::shared_ptr<const cluster::Credentials> credentials;  // null: none
  std::function<bool()> cancelled = [] { return false; };
};

class GrpcClient final : public PsClient {
 public:
  // Waits for the servers, agrees with them on the job and opens the lanes; one that goes away meanwhile is waited for.
  // FAILED_PRECONDITION where they started from different saves: each would have its own part of another model.
  static absl::StatusOr<std::unique_ptr<GrpcClient>> Connect(const ClientOptions& options);
  ~GrpcClient() override;

  int sparse_tables() const override { return static_cast<int>(widths_.size()); }
  int pull_width(int table) const override { return widths_[static_cast<size_t>(table)].pull; }
  int64_t dense_size() const override { return dense_size_; }
  void Pull(const StepTag& tag, std::span<const base::TableKeys> keys, std::span<const base::RowsView<float>> out,
            Call& call) override;
  void PullDense(const StepTag& tag, std::span<float> out, Call& call) override;
  void Push(const base::StepGrads& grads, Call& call) override;
  void PushDense(const base::StepGrads& grads, Call& call) override;
  void Add(std::span<const base::TableGrads> differences, Call& call) override;
  void AddDense(std::span<const float> differences, Call& call) override;
  void Combine(const Rounds& rounds, std::span<const base::TableGrads> differences, Call& call) override;
  void CombineDense(const Rounds& rounds, std::span<const float> differences, Call& call) override;
  void BeginPass(const StepTag& tag, const base::DataPosition& learnt, Call& call) override;
  void LeavePass(const StepTag& tag, Call& call) override;

  // Drops every row of every server, while nobody trains.
  void Clear(Call& call);

  int rank() const { return static_cast<int>(options_.worker.rank()); }
  int workers() const { return static_cast<int>(options_.job.workers()); }
  const wire::LaneMap& lanes() const { return map_; }
  Lane& lane(int server, int index) { return *lanes_[static_cast<size_t>(server)][static_cast<size_t>(index)]; }
  const table::ModelConfig& tables() const { return options_.tables; }
  int servers() const { return map_.servers; }
  const std::string& endpoint(int server) const { return control_[static_cast<size_t>(server)].endpoint; }
  const LaneTraffic& traffic(int server) const { return *traffic_[static_cast<size_t>(server)]; }
  // The save that the servers started from; all zero where there is none.
  const ps::LoadedSave& loaded() const { return loaded_; }
  // Where this rank resumed when it connected; nowhere unless workers come back (JobSpec.on_worker_loss: await).
  const ResumePoint& resume_point() const { return resume_point_; }

  enum class Reply { kNothing, kPayloads };
  enum class Outcome { kResult, kFailure };  // kFailure: the payload is why this worker gives up, and what all hear
  // An all-gather under `name`: everybody's payload by rank (kPayloads), or an empty map.
  // DEADLINE_EXCEEDED names who has not come within `timeout` (0 = wait as long as the others live); CANCELLED when
  // `cancelled` says so, which is asked now and then. A name may be used again; without a `round` it is its next one.
  absl::StatusOr<std::map<int, std::string>> Gather(
      const std::string& name, const std::string& payload, Reply reply, std::chrono::duration<double> timeout = {},
      const std::function<bool()>& cancelled = [] { return false; }, std::optional<uint64_t> round = {},
      Outcome outcome = Outcome::kResult);
  // What the heartbeat carries from now on; worker 0 gets that of all workers that are there back.
  void SetProgress(const WorkerProgress& progress);
  std::map<int, WorkerProgress> progress() const;
  // Tells the other workers, with the next heartbeats, that the job is to stop; and whether somebody has.
  void AskToStop();
  bool stop_asked() const { return stop_asked_; }
  // Tells every server that this worker is done. Later calls do nothing.
  void Goodbye(const absl::Status& why);

 private:
  struct Widths {
    int pull = 0;
    int push = 0;
  };
  explicit GrpcClient(const ClientOptions& options) : options_(options) {}
  absl::Status Prepare();
  absl::Status Join();
  // What a server answers to Connect, when there is nothing more to wait for.
  absl::StatusOr<ps::ConnectReply> Ask(size_t server, const ps::ConnectRequest& request);
  absl::Status TakeResumePoint(const std::vector<ps::ConnectReply>& replies);
  ps::WorkerId JoinedWorker() const;
  absl::Status OpenLanes();
  // A unary call to `server`, repeated while a durable one is away. The call sets its own deadline.
  template <typename Attempt>
  grpc::Status Insist(size_t server, std::chrono::duration<double> timeout, const Attempt& attempt);
  std::string ServerName(int server) const;
  // What is inferred is what was learnt, to the bit.
  ps::Precision PrecisionOf(base::StepKind kind) const {
    return kind == base::StepKind::kTrain ? options_.precision : ps::FLOAT32;
  }
  template <typename Fn>
  void ForEachLane(const Fn& fn);
  ps::FrameHeader HeaderOf(ps::Verb verb, const base::StepGrads& grads) const;
  void SendMark(const ps::FrameHeader& mark, Call& call);
  void SendSections(ps::FrameHeader header, std::span<const base::TableGrads> tables, Call& call);
  void SendBlocks(ps::FrameHeader header, std::span<const base::DenseGrad> pieces, Call& call);
  void Beat();

  ClientOptions options_;
  wire::LaneMap map_;
  std::vector<Widths> widths_;
  int64_t dense_size_ = 0;
  bool steps_together_ = false;  // of the job's mode
  bool tracks_ = false;          // whether pushes say which batches they were learnt from: workers come back
  ps::LoadedSave loaded_;
  ResumePoint resume_point_;
  std::vector<NamedChannel> control_;                    // a server each
  std::vector<std::unique_ptr<OutageLog>> outage_logs_;  // the same
  std::vector<bool> durable_;                            // the same; true before it has said so: it may come back
  size_t joined_ = 0;                                    // servers that have answered Connect
  uint64_t job_id_ = 0;                                  // once all have
  std::vector<std::unique_ptr<ps::ParameterServer::Stub>> stubs_;
  std::vector<std::unique_ptr<LaneTraffic>> traffic_;      // a server each
  std::vector<std::vector<std::unique_ptr<Lane>>> lanes_;  // [server][lane]
  std::atomic<bool> lanes_open_{false};

  mutable base::Mutex mu_;
  base::CondVar wake_;
  WorkerProgress progress_ ABSL_GUARDED_BY(mu_);
  std::map<int, WorkerProgress> everybodys_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, uint64_t> rounds_ ABSL_GUARDED_BY(mu_);  // of Gather, by name
  bool said_goodbye_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<bool> stop_asked_{false};
  std::thread heart_;
};

}  // namespace regatta::client
