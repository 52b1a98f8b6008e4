// The control plane of a worker's connection: it joins the job on every server, gathers with the other workers, keeps
// the heartbeat, and says goodbye. Rows and gradients go over grpc_client.h; connection.h makes both.
// Thread-safety: all methods are concurrent.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "client/client_options.h"
#include "client/control_channel.h"
#include "client/heartbeat.h"
#include "client/job_layout.h"
#include "client/resume_point.h"

namespace regatta::client {

enum class GatherReply : uint8_t { kNothing, kPayloads };
enum class GatherOutcome : uint8_t { kResult, kFailure };  // kFailure: the payload is why this worker gives up

struct GatherOptions {
  GatherReply reply = GatherReply::kPayloads;
  std::chrono::duration<double> timeout{0};                // 0 = as long as the others live
  std::function<bool()> cancelled = [] { return false; };  // asked now and then
  std::optional<uint64_t> round = {};                      // nothing: the next one of the name
  GatherOutcome outcome = GatherOutcome::kResult;
};

class JobControl {
 public:
  // Waits for the servers and agrees with them on the job; one that goes away meanwhile is waited for. The worker beats
  // from then on. FAILED_PRECONDITION where servers started from different saves.
  static absl::StatusOr<std::unique_ptr<JobControl>> Join(const ClientOptions& options, const JobLayout& layout);
  // Ends the heartbeat, and says goodbye where nobody has: the process ends.
  ~JobControl();
  JobControl(const JobControl&) = delete;
  JobControl& operator=(const JobControl&) = delete;

  int rank() const { return static_cast<int>(options_.worker.rank()); }
  int workers() const { return static_cast<int>(options_.job.workers()); }
  int servers() const { return static_cast<int>(servers_.size()); }
  // The control verbs of a server; what its lanes share with them.
  ControlChannel& server(int index) { return *servers_[static_cast<size_t>(index)]; }
  const std::string& endpoint(int server) const { return servers_[static_cast<size_t>(server)]->channel().endpoint; }
  // This worker, with the number of the job that it has joined: a server that came back with another job's folder knows
  // by it that the worker is not its own.
  ps::WorkerId joined_worker() const;
  // The save that the servers started from; all zero where there is none.
  const ps::LoadedSave& loaded() const { return loaded_; }
  // Where this rank resumed when it joined; nowhere unless workers come back (JobSpec.on_worker_loss: await).
  const ResumePoint& resume_point() const { return resume_point_; }

  // An all-gather under `name`: everybody's payload by rank (kPayloads), or an empty map. DEADLINE_EXCEEDED names who
  // has not come within the timeout; CANCELLED when `cancelled` says so. A name may be used again. With kFailure all
  // workers get the payload as their error.
  absl::StatusOr<std::map<int, std::string>> Gather(const std::string& name, const std::string& payload,
                                                    const GatherOptions& options = {});
  Heartbeat& heartbeat() { return *heartbeat_; }
  const Heartbeat& heartbeat() const { return *heartbeat_; }
  // Tells every server that this worker is done, or why it gives up. Later calls do nothing.
  void Goodbye(const absl::Status& why);

 private:
  explicit JobControl(const ClientOptions& options);
  absl::Status JoinServers(const JobLayout& layout);
  // What a server answers to Connect, when there is nothing more to wait for.
  absl::StatusOr<ps::ConnectReply> Connect(ControlChannel& server, const ps::ConnectRequest& request);

  // Constant after Join.
  ClientOptions options_;
  std::vector<std::unique_ptr<ControlChannel>> servers_;
  ps::LoadedSave loaded_;
  ResumePoint resume_point_;
  size_t joined_ = 0;    // servers that have answered Connect
  uint64_t job_id_ = 0;  // once all have
  std::unique_ptr<Heartbeat> heartbeat_;

  base::Mutex mu_;
  std::map<std::string, uint64_t> rounds_ ABSL_GUARDED_BY(mu_);  // the next one of Gather, by name
  bool said_goodbye_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::client
