// The life of a process in a job, with the names of PaddlePaddle's Fleet: one program plays both roles.
//
//   ASSIGN_OR_RETURN(auto fleet, Fleet::Init());     // the role comes from the environment
//   if (fleet->is_server()) {
//     RETURN_IF_ERROR(fleet->InitServer());          // or InitServer(dir): goes on from a save
//     return fleet->RunServer();                     // until the workers are done
//   }
//   RETURN_IF_ERROR(fleet->InitWorker(options));     // waits for the servers and the other workers
//   …                                                // train: worker/training.h
//   RETURN_IF_ERROR(fleet->SavePersistables(dir));
//   fleet->StopWorker();
//
// Without a role in the environment the process is alone: a worker, the first of one, with the tables in the process.
// The same program then just works.
//
// Paddle's names: questions keep theirs (is_server, worker_index, server_endpoints), as accessors do here; verbs are
// the same words in this code's CamelCase:
//   fleet.init(role)          Fleet::Init        fleet.barrier_worker     BarrierWorker
//   fleet.init_server(dir)    InitServer         fleet.all_reduce_worker  AllReduceWorker
//   fleet.run_server          RunServer          fleet.split_files        SplitFiles
//   fleet.init_worker         InitWorker         fleet.save_persistables  SavePersistables
//   fleet.stop_worker         StopWorker         fleet.load_model         LoadModel
//   fleet.shrink              Shrink
// One difference in use: every worker calls SavePersistables and LoadModel, and the first one does the work; Paddle has
// the first one alone call them while the others may still push.
//
// Thread-safety: one thread, but for StopServer and the communicator, which has its own rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "checkpoint/run_state.h"
#include "cluster/cluster_spec.h"
#include "cluster/role_maker.h"
#include "comm/communicator.h"
#include "data/file_list.h"
#include "fleet/reduce.h"
#include "fleet/worker_options.h"
#include "run/team.h"

namespace regatta::server {
class PsServer;
}
namespace regatta::checkpoint {
class ModelStore;
}

namespace regatta::fleet {

class EmbeddedTables;
class WorkerNode;

class Fleet {
 public:
  // The role that the environment names (cluster/environment.h): PaddleCloudRoleMaker. Errors are the user's: they list
  // every variable that is missing or wrong. `access` goes before the environment: credentials (REGATTA_TOKEN_FILE,
  // REGATTA_TLS_*), or kTrusted, as REGATTA_INSECURE=1, for addresses outside this machine.
  static absl::StatusOr<std::unique_ptr<Fleet>> Init(const cluster::Access& access = {});
  // The role that the program names: UserDefinedRoleMaker.
  static absl::StatusOr<std::unique_ptr<Fleet>> Init(const cluster::UserDefinedRole& role);
  // A place that was found elsewhere. UNIMPLEMENTED for roles that this version cannot play.
  static absl::StatusOr<std::unique_ptr<Fleet>> Init(const cluster::ClusterSpec& place);
  // A worker that has not said StopWorker leaves as one that gives up.
  ~Fleet();

  bool alone() const { return place_.role == cluster::Role::kLocal; }
  bool is_server() const { return place_.role == cluster::Role::kServer; }
  bool is_worker() const { return !is_server(); }
  bool is_first_worker() const { return is_worker() && place_.index == 0; }
  int worker_index() const { return is_worker() ? place_.index : -1; }  // -1 in a server
  int worker_num() const { return place_.workers; }
  int server_index() const { return is_server() ? place_.index : -1; }        // -1 in a worker
  int server_num() const { return static_cast<int>(place_.servers.size()); }  // 0 alone
  const std::vector<std::string>& server_endpoints() const { return place_.servers; }
  const cluster::ClusterSpec& place() const { return place_; }
  // Whether whoever started this job starts killed workers again (REGATTA_WORKERS_RETURN, which regatta launch
  // --max_restarts sets). A program that is prepared for it says LossPolicy::kAwait then: worker/training.h.
  bool workers_return() const { return place_.workers_return; }

  // ---- A server.
  // Listens. With `dir`, a save (or a folder of saves) on this machine, its part of the rows and dense parameters is
  // loaded first, optimizer state and all: training goes on from there. Workers whose tables do not fit the save are
  // refused with every field that differs; learning rates, schedules and initial values may.
  // With a data_dir (REGATTA_DATA_DIR, if `data_dir` is empty) the server logs what it acknowledges there. Started
  // again on the same folder it goes on with its job, whatever `dir` says. REGATTA_LOG_LIMIT, REGATTA_PUSH_MEMORY and
  // REGATTA_LEASE_SECONDS hold as for regatta pserver.
  absl::Status InitServer(const std::string& dir = "", const std::string& data_dir = "");
  // Returns when all workers are done (OK; at once if the job in its data_dir was done before), when the job failed
  // (why), or after StopServer (CANCELLED).
  absl::Status RunServer();
  // Makes RunServer return. Async-signal-safe.
  void StopServer();

  // ---- A worker.
  // Waits for the servers and the other workers and agrees with them on the job; alone it makes the tables. The place
  // in `options` is filled in here. Every worker calls it, once.
  absl::Status InitWorker(const WorkerOptions& options);
  // Where the save had come to that the tables were loaded from, by InitServer or LoadModel: epochs finished, steps
  // made. Zero where they were not. After InitWorker.
  struct LoadedState {
    uint64_t epochs = 0;
    uint64_t steps = 0;
  };
  const LoadedState& loaded() const { return loaded_; }
  // The communicator of the mode, for a trainer. `first_step` is where the steps go on. Once, after LoadModel.
  absl::StatusOr<comm::Communicator*> StartCommunicator(uint64_t first_step = 0);

  // Returns when every worker that is still there has called it.
  absl::Status BarrierWorker();
  // Every worker brings as many numbers and leaves with the same ones: reduce.h.
  absl::Status AllReduceWorker(std::span<double> numbers, Reduce how) { return AllReduce(numbers, how); }
  absl::Status AllReduceWorker(std::span<int64_t> numbers, Reduce how) { return AllReduce(numbers, how); }
  // One number each: a double, or an int64_t where it is an integer.
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  auto AllReduceWorker(Number number, Reduce how)
      -> absl::StatusOr<std::conditional_t<std::is_integral_v<Number>, int64_t, double>> {
    std::conditional_t<std::is_integral_v<Number>, int64_t, double> wide = number;
    RETURN_IF_ERROR(AllReduce(std::span(&wide, 1), how));
    return wide;
  }
  // This worker's of the files that all workers name in the same order.
  absl::StatusOr<std::vector<std::string>> SplitFiles(const std::vector<std::string>& files,
                                                      data::FileSplit split = data::FileSplit::kContiguous) const;

  // Every worker calls it, between passes; the first one writes all tables, with the optimizers' state, to `dir` on its
  // machine. Afterwards the save is complete and durable, for all of them. `dir` may hold an older save, which is
  // replaced. Loads with any number of servers, or none: InitServer, LoadModel, regatta infer, regatta checkpoint.
  absl::Status SavePersistables(const std::string& dir, const checkpoint::RunState& run = {});
  // Every worker calls it, before the communicator starts; the first one reads `dir` and fills the tables, wherever
  // they are.
  absl::Status LoadModel(const std::string& dir);
  // Every worker calls it, before the communicator starts: the first one's values become the dense parameters, and the
  // rule's state begins anew. For loops that own their parameters. A process that replaces a killed one changes
  // nothing.
  absl::Status FillDense(std::span<const float> values);
  // The same for rows of a sparse table: the first worker's keys get these weights, as many floats each as a pull
  // gives, and a new row's state; other rows stay.
  absl::Status FillRows(int table, std::span<const base::Key> keys, std::span<const float> weights);
  // The dense parameters as they are now, wherever they are.
  absl::Status ReadDense(std::span<float> out);
  // UNIMPLEMENTED: rows do not carry the statistics by which Paddle's ctr accessor drops them.
  absl::Status Shrink(double threshold);
  // This worker is done; `why` is not OK where it gives up. The servers end when all workers have said it. Later calls
  // do nothing.
  void StopWorker(const absl::Status& why = absl::OkStatus());

  // So many epochs are done. A worker that replaces a killed one comes again to the collective calls since then, and
  // gets the answers of those that are over; they are told apart by the epochs and their number since. Training says
  // it.
  void SetEpochsDone(uint64_t epochs);
  uint64_t epochs_done() const { return epochs_done_; }

  // What the workers do together; a team of one alone, and before InitWorker.
  run::Team& team() const { return *team_; }
  // The tables, wherever they are. After InitWorker.
  checkpoint::ModelStore& model();
  // The connection to the servers. Null alone, and before InitWorker.
  WorkerNode* worker() const { return worker_.get(); }
  // Null with servers, and before InitWorker.
  EmbeddedTables* embedded() const { return embedded_.get(); }
  // Bytes to and from the servers so far.
  uint64_t wire_bytes() const;

 private:
  explicit Fleet(const cluster::ClusterSpec& place);
  absl::Status CheckServer(const char* verb) const;
  absl::Status CheckWorker(const char* verb) const;
  absl::Status CheckReady(const char* verb) const;
  absl::Status Fill(const char* verb, const std::function<absl::Status()>& fill);
  template <typename Number>
  absl::Status AllReduce(std::span<Number> numbers, Reduce how);

  // Uses of the verbs since epochs_done_ changed. A use that failed is not counted: the next one repeats its round.
  struct Uses {
    uint64_t barrier = 0;
    uint64_t all_reduce = 0;
    uint64_t save = 0;
    uint64_t load = 0;
  };

  const cluster::ClusterSpec place_;
  std::unique_ptr<server::PsServer> server_;
  bool served_ = false;  // before InitServer: the job in its data_dir is done
  std::unique_ptr<WorkerNode> worker_;
  std::unique_ptr<EmbeddedTables> embedded_;
  std::unique_ptr<run::Team> team_;  // over worker_; never null
  uint64_t epochs_done_ = 0;
  Uses uses_;
  LoadedState loaded_;
  bool communicating_ = false;
};

}  // namespace regatta::fleet
