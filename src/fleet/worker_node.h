// A worker's place in a job: the connection to the servers, the communicator of the job's mode, and what workers do
// together: gather, add up, save, load, leave.
// Thread-safety: one thread, but for the communicator, which has its own rules.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "client/connection.h"
#include "client/remote_model.h"
#include "client/remote_snapshot.h"
#include "comm/communicator.h"
#include "fleet/worker_options.h"

namespace regatta::fleet {

// What a worker of this machine with process id `pid` says of where it is.
std::string WhereIs(int64_t pid);

class WorkerNode {
 public:
  // Waits for the servers and agrees with them on the job. Every worker of the job calls it.
  static absl::StatusOr<std::unique_ptr<WorkerNode>> Start(const WorkerOptions& options);
  // Says goodbye where Stop has not.
  ~WorkerNode();

  int rank() const { return options_.rank; }
  int workers() const { return options_.workers; }
  bool first() const { return options_.rank == 0; }

  // Where the save that the servers started from had come to; zero where there is none.
  uint64_t loaded_epochs() const { return control().loaded().epochs(); }
  uint64_t loaded_steps() const { return control().loaded().steps(); }

  // Where this rank resumed when it connected: not at the beginning where it takes the place of a process that died.
  const client::ResumePoint& resume_point() const { return control().resume_point(); }

  // The communicator; `first_step` is where a resumed run's steps go on. Once.
  absl::StatusOr<comm::Communicator*> StartCommunicator(uint64_t first_step);

  // All workers that are still there call these with the same name.
  absl::Status Barrier(const std::string& name);
  absl::StatusOr<uint64_t> AgreeMax(const std::string& name, uint64_t value);
  using Outcome = client::GatherOutcome;
  absl::StatusOr<std::map<int, std::string>> Gather(const std::string& name, const std::string& payload,
                                                    std::optional<uint64_t> round = {},
                                                    Outcome outcome = Outcome::kResult);

  // What the heartbeat carries; the first worker sees that of everybody who is there.
  void SetProgress(const client::WorkerProgress& progress) { control().heartbeat().SetProgress(progress); }
  std::map<int, client::WorkerProgress> progress() const { return control().heartbeat().progress(); }

  // Asks all workers to stop at their next step; and whether somebody has.
  void AskToStop() { control().heartbeat().AskToStop(); }
  bool stop_asked() const { return control().heartbeat().stop_asked(); }

  // The servers' model, to be saved or filled by one worker while the others wait at a barrier.
  client::RemoteModel& model() { return model_; }
  // The dense parameters as the servers have them now.
  absl::Status ReadDense(std::span<float> out);
  // Begins a snapshot of it while all workers have pushed what they have and wait. `number` is above 0 and new.
  absl::StatusOr<std::unique_ptr<client::RemoteSnapshot>> BeginSnapshot(uint64_t number) {
    return client::RemoteSnapshot::Begin(connection_->data(), number);
  }
  const base::ModeTraits& mode() const { return base::TraitsOf(options_.mode); }
  int servers() const { return control().servers(); }
  const std::string& endpoint(int server) const { return control().endpoint(server); }
  const client::LaneTraffic& traffic(int server) const { return connection_->data().traffic(server); }

  // This worker is done; `why` is not OK where it gives up.
  void Stop(const absl::Status& why);

 private:
  WorkerNode(const WorkerOptions& options, std::unique_ptr<client::Connection> connection)
      : options_(options), connection_(std::move(connection)), model_(connection_->data()) {}

  client::JobControl& control() { return connection_->control(); }
  const client::JobControl& control() const { return connection_->control(); }

  const WorkerOptions options_;
  std::unique_ptr<client::Connection> connection_;
  client::RemoteModel model_;
  std::unique_ptr<comm::Communicator> communicator_;
};

}  // namespace regatta::fleet
