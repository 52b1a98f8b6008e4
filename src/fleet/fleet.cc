#include "fleet/fleet.h"

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/model_store.h"
#include "checkpoint/save_list.h"
#include "cluster/environment.h"
#include "fleet/embedded_tables.h"
#include "fleet/server_team.h"
#include "fleet/worker_node.h"
#include "run/alone_team.h"
#include "run/rounds.h"
#include "server/ps_server.h"

namespace regatta::fleet {
namespace {

constexpr int kMostThreads = 1024;

// What the place says of a worker.
void FillPlace(const cluster::ClusterSpec& place, WorkerOptions& options) {
  options.servers.clear();
  size_t sparse_ports = 1;
  for (int i = 0; i < static_cast<int>(place.servers.size()); ++i) {
    const cluster::ServerPorts ports = cluster::PortsOfServer(place, i);
    options.servers.push_back({ports.dense, ports.sparse});
    sparse_ports = ports.sparse.size();
  }
  options.rank = place.index;
  options.workers = place.workers;
  options.credentials = place.credentials;
  options.sparse_lanes = std::max(options.sparse_lanes, static_cast<int>(sparse_ports));
  if (!options.wait_timeout.has_value() && place.server_wait_timeout.has_value())
    options.wait_timeout = std::chrono::duration<double>(*place.server_wait_timeout);
}

// What the environment says of a server's log, as regatta pserver takes it.
absl::Status TakeDurability(const cluster::Getenv& getenv, const std::string& data_dir,
                            server::ServerOptions& options) {
  options.data_dir = data_dir.empty() ? cluster::ReadDataDir(getenv) : data_dir;
  ASSIGN_OR_RETURN(const int log_limit, cluster::ReadLogLimit(getenv));
  ASSIGN_OR_RETURN(const int push_memory, cluster::ReadPushMemory(getenv));
  ASSIGN_OR_RETURN(const double lease, cluster::ReadLease(getenv));
  ASSIGN_OR_RETURN(const std::optional<double> since, cluster::ReadJobSince(getenv));
  options.compactor.log_bytes = static_cast<uint64_t>(log_limit) << 20;
  options.push_memory = static_cast<uint64_t>(push_memory) << 20;
  options.lease.length = std::chrono::duration<double>(lease);
  if (since.has_value()) options.since = *since;
  return absl::OkStatus();
}

absl::Status Save(checkpoint::ModelStore& model, const std::string& dir, const checkpoint::RunState& run) {
  const std::filesystem::path parent = std::filesystem::absolute(dir).lexically_normal().parent_path();
  RETURN_IF_ERROR(base::MakeFolders(parent.string()));
  ASSIGN_OR_RETURN(checkpoint::SaveContents contents, model.Contents());
  contents.run = run;
  return checkpoint::WriteCheckpoint(dir, contents);
}

absl::StatusOr<run::LoadedMessage> Load(checkpoint::ModelStore& model, const std::string& dir) {
  ASSIGN_OR_RETURN(const std::string folder, checkpoint::ResolveSave(dir));
  ASSIGN_OR_RETURN(const checkpoint::CheckpointReader reader, checkpoint::CheckpointReader::Open(folder));
  RETURN_IF_ERROR(model.LoadFrom(reader, checkpoint::LoadKind::kTraining));
  run::LoadedMessage loaded;
  loaded.set_epochs(reader.manifest().run.FinishedEpochs());
  loaded.set_steps(reader.manifest().run.step);
  return loaded;
}

}  // namespace

Fleet::Fleet(const cluster::ClusterSpec& place) : place_(place), team_(std::make_unique<run::AloneTeam>()) {}

Fleet::~Fleet() = default;

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Init(const cluster::Access& access) {
  ASSIGN_OR_RETURN(const cluster::ClusterSpec place, cluster::ReadEnvironment(cluster::ProcessEnvironment(), access));
  for (const std::string& note : place.notes) LOG(INFO) << note;
  return Init(place);
}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Init(const cluster::UserDefinedRole& role) {
  ASSIGN_OR_RETURN(const cluster::ClusterSpec place, cluster::MakeUserDefinedRole(role));
  return Init(place);
}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Init(const cluster::ClusterSpec& place) {
  RETURN_IF_ERROR(cluster::CheckAvailable(place));
  return std::unique_ptr<Fleet>(new Fleet(place));
}

absl::Status Fleet::CheckServer(const char* verb) const {
  if (is_server()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(verb, " is for servers, and this process is ",
                                                    alone() ? "alone" : absl::StrCat("worker ", place_.index),
                                                    ": ask is_server() first"));
}

absl::Status Fleet::CheckWorker(const char* verb) const {
  if (is_worker()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(verb, " is for workers, and this process is server ", place_.index, ": ask is_worker() first"));
}

absl::Status Fleet::CheckReady(const char* verb) const {
  RETURN_IF_ERROR(CheckWorker(verb));
  if (worker_ != nullptr || embedded_ != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(verb, " comes after InitWorker"));
}

absl::Status Fleet::InitServer(const std::string& dir, const std::string& data_dir) {
  RETURN_IF_ERROR(CheckServer("InitServer"));
  if (server_ != nullptr || served_) return absl::FailedPreconditionError("InitServer was called before");
  server::ServerOptions options;
  options.listen =
      cluster::AllPorts(cluster::PortsFrom(place_.endpoint, place_.ports_num, place_.ports_num_for_sparse));
  options.workers = place_.workers;
  options.load = dir;
  options.credentials = place_.credentials;
  options.place = server::ServerPlace{place_.index, server_num()};
  RETURN_IF_ERROR(TakeDurability(cluster::ProcessEnvironment(), data_dir, options));
  ASSIGN_OR_RETURN(server_, server::PsServer::Start(options));
  served_ = server_ == nullptr;
  return absl::OkStatus();
}

absl::Status Fleet::RunServer() {
  RETURN_IF_ERROR(CheckServer("RunServer"));
  if (served_) return absl::OkStatus();
  if (server_ == nullptr) return absl::FailedPreconditionError("RunServer comes after InitServer");
  return server_->Wait();
}

void Fleet::StopServer() {
  if (server_ != nullptr) server_->Stop();
}

absl::Status Fleet::InitWorker(const WorkerOptions& options) {
  RETURN_IF_ERROR(CheckWorker("InitWorker"));
  if (worker_ != nullptr || embedded_ != nullptr) return absl::FailedPreconditionError("InitWorker was called before");
  if (options.threads < 1 || options.threads > kMostThreads)
    return absl::InvalidArgumentError(absl::StrCat("threads: ", options.threads, "; there may be 1 to ", kMostThreads));
  if (alone()) {
    ASSIGN_OR_RETURN(embedded_, EmbeddedTables::Create(options.tables, options.nan_policy, options.threads));
    return absl::OkStatus();
  }
  WorkerOptions placed = options;
  FillPlace(place_, placed);
  ASSIGN_OR_RETURN(worker_, WorkerNode::Start(placed));
  team_ = std::make_unique<ServerTeam>(*worker_);
  loaded_ = {worker_->loaded_epochs(), worker_->loaded_steps()};
  return absl::OkStatus();
}

absl::StatusOr<comm::Communicator*> Fleet::StartCommunicator(uint64_t first_step) {
  RETURN_IF_ERROR(CheckReady("StartCommunicator"));
  if (communicating_) return absl::FailedPreconditionError("StartCommunicator was called before");
  communicating_ = true;
  if (alone()) return &embedded_->communicator();
  return worker_->StartCommunicator(first_step);
}

void Fleet::SetEpochsDone(uint64_t epochs) {
  if (epochs == epochs_done_) return;
  epochs_done_ = epochs;
  uses_ = {};
}

absl::Status Fleet::BarrierWorker() {
  RETURN_IF_ERROR(CheckReady("BarrierWorker"));
  RETURN_IF_ERROR(run::AllOk(team(), run::rounds::Barrier(epochs_done_, uses_.barrier), absl::OkStatus()));
  ++uses_.barrier;
  return absl::OkStatus();
}

template <typename Number>
absl::Status Fleet::AllReduce(std::span<Number> numbers, Reduce how) {
  RETURN_IF_ERROR(CheckReady("AllReduceWorker"));
  ASSIGN_OR_RETURN(const auto messages, run::AllGather(team(), run::rounds::AllReduce(epochs_done_, uses_.all_reduce),
                                                       NumbersOf(std::span<const Number>(numbers))));
  ++uses_.all_reduce;
  return base::Annotate(ReduceNumbers(messages, how, numbers), "AllReduceWorker");
}

template absl::Status Fleet::AllReduce(std::span<double>, Reduce);
template absl::Status Fleet::AllReduce(std::span<int64_t>, Reduce);

absl::StatusOr<std::vector<std::string>> Fleet::SplitFiles(const std::vector<std::string>& files,
                                                           data::FileSplit split) const {
  RETURN_IF_ERROR(CheckWorker("SplitFiles"));
  return data::SplitFiles(files, place_.index, place_.workers, split);
}

checkpoint::ModelStore& Fleet::model() {
  CHECK(worker_ != nullptr || embedded_ != nullptr) << "model() comes after InitWorker";
  if (embedded_ != nullptr) return embedded_->model();
  return worker_->model();
}

absl::Status Fleet::SavePersistables(const std::string& dir, const checkpoint::RunState& run) {
  RETURN_IF_ERROR(CheckReady("SavePersistables"));
  if (dir.empty()) return absl::InvalidArgumentError("SavePersistables: the folder has no name");
  RETURN_IF_ERROR(run::AllOk(team(), run::rounds::SaveBegins(epochs_done_, uses_.save), absl::OkStatus()));
  const auto saved = run::rounds::Saved(epochs_done_, uses_.save);
  const bool mine = is_first_worker() && !team().Completed(saved);
  RETURN_IF_ERROR(run::AllOk(team(), saved, mine ? Save(model(), dir, run) : absl::OkStatus()));
  ++uses_.save;
  return absl::OkStatus();
}

absl::Status Fleet::LoadModel(const std::string& dir) {
  RETURN_IF_ERROR(CheckReady("LoadModel"));
  if (communicating_)
    return absl::FailedPreconditionError(
        "LoadModel comes before training begins: steps under way and replicas would not know of it");
  RETURN_IF_ERROR(run::AllOk(team(), run::rounds::LoadBegins(epochs_done_, uses_.load), absl::OkStatus()));
  const auto loaded = run::rounds::Loaded(epochs_done_, uses_.load);
  const bool mine = is_first_worker() && !team().Completed(loaded);
  const auto found = run::Broadcast(team(), loaded, mine ? Load(model(), dir) : run::LoadedMessage());
  if (!found.ok()) return base::Annotate(found.status(), "LoadModel");
  loaded_ = {found->epochs(), found->steps()};
  ++uses_.load;
  return absl::OkStatus();
}

absl::Status Fleet::Fill(const char* verb, const std::function<absl::Status()>& fill) {
  RETURN_IF_ERROR(CheckReady(verb));
  if (communicating_) return absl::FailedPreconditionError(absl::StrCat(verb, " comes before training begins"));
  RETURN_IF_ERROR(run::AllOk(team(), run::rounds::LoadBegins(epochs_done_, uses_.load), absl::OkStatus()));
  const auto loaded = run::rounds::Loaded(epochs_done_, uses_.load);
  const bool mine = is_first_worker() && !team().Completed(loaded);
  const auto outcome = [&]() -> absl::StatusOr<run::LoadedMessage> {
    if (mine) RETURN_IF_ERROR(fill());
    return run::LoadedMessage();
  };
  const auto filled = run::Broadcast(team(), loaded, outcome());
  if (!filled.ok()) return base::Annotate(filled.status(), verb);
  ++uses_.load;
  return absl::OkStatus();
}

absl::Status Fleet::FillDense(std::span<const float> values) {
  return Fill("FillDense", [&] { return model().FillDense(values); });
}

absl::Status Fleet::FillRows(int table, std::span<const base::Key> keys, std::span<const float> weights) {
  return Fill("FillRows", [&] { return model().FillRows(static_cast<size_t>(table), keys, weights); });
}

absl::Status Fleet::ReadDense(std::span<float> out) {
  RETURN_IF_ERROR(CheckReady("ReadDense"));
  if (worker_ != nullptr) return worker_->ReadDense(out);
  const table::DenseTable* const dense = embedded_->dense();
  RETURN_IF_ERROR(checkpoint::CheckDenseSize(out.size(), dense == nullptr ? 0 : static_cast<size_t>(dense->size())));
  if (dense != nullptr) dense->Snapshot(out);
  return absl::OkStatus();
}

absl::Status Fleet::Shrink(double threshold) {
  return absl::UnimplementedError(absl::StrCat(
      "Shrink(", threshold,
      "): rows are dropped by their shows and clicks, which only Paddle's ctr accessor keeps and which this version "
      "does not have; tables have the accessor 'plain', whose rows stay. What there is: fewer rows by leaving rare ids "
      "out of the input, and smaller ones by a smaller dim or a rule with less state (docs/rules.md)"));
}

void Fleet::StopWorker(const absl::Status& why) {
  if (worker_ != nullptr) worker_->Stop(why);
}

uint64_t Fleet::wire_bytes() const {
  uint64_t bytes = 0;
  for (int server = 0; worker_ != nullptr && server < worker_->servers(); ++server)
    bytes += worker_->traffic(server).bytes_in.value() + worker_->traffic(server).bytes_out.value();
  return bytes;
}

}  // namespace regatta::fleet
