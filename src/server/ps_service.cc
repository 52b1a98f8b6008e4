#include "server/ps_service.h"

#include <glog/logging.h>

#include "absl/strings/str_join.h"
#include "base/elapsed.h"
#include "base/failpoint.h"
#include "base/incarnation.h"
#include "base/printable.h"
#include "metrics/process_load.h"
#include "server/job_metrics.h"
#include "server/job_status.h"
#include "server/lane_session.h"
#include "server/local_saves.h"
#include "wire/frame.h"
#include "wire/frame_seal.h"
#include "wire/lane_progress.h"
#include "wire/transport.h"

namespace regatta::server {
namespace {

constexpr size_t kMaxProgressBytes = 64 << 10;
constexpr size_t kMaxNameBytes = 256;

Identity ToIdentity(const ps::WorkerId& worker) {
  return {static_cast<int>(std::min<uint32_t>(worker.rank(), 1u << 30)), worker.incarnation(),
          base::Printable(worker.where().substr(0, kMaxNameBytes))};
}

// Where a rank stands, which another process may have brought there.
void TellProgress(HostedJob& job, int rank, ps::ConnectReply& reply) {
  for (int lane = 0; lane < job.spec().lanes.lanes(); ++lane) {
    WorkerLane& worker_lane = job.worker_lane(rank, lane);
    base::MutexLock lock(worker_lane.mu);
    ps::LaneProgress& lane_progress = *reply.add_lanes();
    wire::ToWire(worker_lane.learnt, lane_progress);
    lane_progress.set_next_step(worker_lane.next_step);
  }
  for (const auto& [name, round] : job.rendezvous().over()) {
    ps::Meeting& met = *reply.add_met();
    met.set_name(name);
    met.set_round(round);
  }
}

}  // namespace

PsService::PsService(const ServiceOptions& options, Journal* journal)
    : guard_(options.credentials),
      lanes_(options.hello_timeout),
      options_(options),
      journal_(journal),
      incarnation_(base::NewIncarnation()) {}

absl::Status PsService::Recover() {
  if (journal_ == nullptr || journal_->entries().empty()) return absl::OkStatus();
  base::MutexLock lock(mu_);
  LOG(INFO) << "goes on with the job in " << journal_->data_dir();
  return StartJob(journal_->entries().front().job());
}

absl::Status PsService::LoadNow(const ServerPlace& place) {
  base::MutexLock lock(mu_);
  ASSIGN_OR_RETURN(loaded_, TableShare::CreateFrom(options_.load, place));
  LOG(INFO) << "loaded " << loaded_->rows() << " rows and " << loaded_->dense().size() << " dense parameters of "
            << options_.load << ": server " << place.server << " of " << place.servers;
  return absl::OkStatus();
}

// Learning rates, schedules and initial values may be others than the save's: then the tables are made anew.
absl::StatusOr<std::unique_ptr<TableShare>> PsService::TablesFor(const table::ModelConfig& configs,
                                                                 const ServerPlace& place) {
  if (loaded_ != nullptr && loaded_->configs() == configs && loaded_->place() == place) return std::move(loaded_);
  loaded_.reset();
  ASSIGN_OR_RETURN(auto tables, TableShare::Create(configs, place));
  if (!options_.load.empty()) RETURN_IF_ERROR(tables->LoadFrom(options_.load));
  return tables;
}

HostedJob* PsService::job() const {
  base::MutexLock lock(mu_);
  return job_.get();
}

absl::Status PsService::StartJob(const ps::ConnectRequest& request) {
  ASSIGN_OR_RETURN(const JobSpec spec, ParseJobSpec(request.job()));
  if (options_.workers > 0 && spec.workers != options_.workers)
    return absl::FailedPreconditionError(
        absl::StrCat("workers: the worker says ", spec.workers, ", this server was started for ", options_.workers));
  if (options_.servers > 0 && spec.lanes.servers != options_.servers)
    return absl::FailedPreconditionError(absl::StrCat("servers: the worker knows of ", spec.lanes.servers,
                                                      ", this server is one of ", options_.servers,
                                                      "; give all processes the same list of servers"));
  if ((spec.ack == base::Ack::kLogged || spec.ack == base::Ack::kSynced) && journal_ == nullptr)
    return absl::FailedPreconditionError(absl::StrCat("ack: the job asks for ", request.job().ack(),
                                                      ", and this server has nowhere to write a log: start it with "
                                                      "--data_dir (REGATTA_DATA_DIR)"));
  if (request.server() >= static_cast<uint32_t>(spec.lanes.servers))
    return absl::InvalidArgumentError(
        absl::StrCat("server: there is no server ", request.server(), " of ", spec.lanes.servers));
  const ServerPlace place{static_cast<int>(request.server()), spec.lanes.servers};
  const uint64_t job_id = request.job_id() == 0 ? base::NewIncarnation() : request.job_id();
  Journal* const journal = spec.ack == base::Ack::kMemory ? nullptr : journal_;
  if (spec.loss_policy == base::LossPolicy::kAwait && journal == nullptr)
    return absl::FailedPreconditionError(
        "on_worker_loss: workers can come back (await) where servers log what they acknowledge: start this server with "
        "--data_dir (REGATTA_DATA_DIR), and with another runner.ack than memory");
  std::unique_ptr<TableShare> tables;
  ps::ServerState state;
  if (journal != nullptr && !journal->entries().empty()) {
    ASSIGN_OR_RETURN(auto saved, LocalSaves(journal->folder()).LoadNewest(spec.tables, place));
    if (saved.has_value()) {
      tables = std::move(saved->tables);
      state = std::move(saved->state);
      if (state.has_loaded())
        tables->SetLoaded({state.loaded().epochs(), state.loaded().steps(), state.loaded().identity()});
    }
  }
  if (tables == nullptr) {
    ASSIGN_OR_RETURN(tables, TablesFor(spec.tables, place));
  }
  if (journal != nullptr) {
    journal->SetAck(spec.ack.value_or(base::Ack::kLogged));
    journal->SetSegmentBytes(LogCompactor::SegmentBytes(options_.compactor, spec.lanes.lanes()));
    if (journal->entries().empty()) {
      RETURN_IF_ERROR(LocalSaves(journal->folder()).RemoveAll());
      ps::JournalEntry entry;
      *entry.mutable_job() = request;
      entry.mutable_job()->set_job_id(job_id);
      RETURN_IF_ERROR(journal->Write(entry));
    }
  }
  ASSIGN_OR_RETURN(job_, HostedJob::Create(spec, std::move(tables), journal, state));
  job_->roster().SetLives(options_.lives);
  job_->LimitPushMemory(options_.push_memory);
  if (journal != nullptr) {
    ASSIGN_OR_RETURN(compactor_, LogCompactor::Start(*job_, *journal, options_.compactor));
  }
  spec_ = std::make_shared<const ps::JobSpec>(request.job());
  job_id_ = job_id;
  LOG(INFO) << "job: " << spec_->mode() << ", " << spec.workers << " workers, server " << request.server() << " of "
            << spec_->servers() << ", " << spec.tables.sparse.size() << " sparse tables, " << job_->dense().size()
            << " dense parameters here, " << job_->rows() << " rows";
  return absl::OkStatus();
}

absl::StatusOr<HostedJob*> PsService::JoinJob(const ps::ConnectRequest& request) {
  if (request.protocol() != wire::kProtocolVersion)
    return absl::FailedPreconditionError(absl::StrCat("protocol: the worker speaks version ", request.protocol(),
                                                      ", this server version ", wire::kProtocolVersion,
                                                      "; run the same Regatta everywhere"));
  RETURN_IF_ERROR(CheckSize(request.job()));
  std::shared_ptr<const ps::JobSpec> here;
  HostedJob* hosted = nullptr;
  {
    base::MutexLock lock(mu_);
    ASSIGN_OR_RETURN(hosted, FindOrStartJob(request));
    here = spec_;
  }
  // Without the lock: every verb needs it. One at a time: each takes memory.
  base::MutexLock turn(compare_mu_);
  std::vector<std::string> differences = Differences(*here, request.job());
  if (static_cast<int>(request.server()) != hosted->server())
    differences.push_back(absl::StrCat("server: index ", hosted->server(), " here, ", request.server(), " there"));
  if (differences.empty()) return hosted;
  return absl::FailedPreconditionError(absl::StrCat("worker ", request.worker().rank(),
                                                    " does not fit the job that runs here (here = the first worker's, "
                                                    "there = this worker's): ",
                                                    absl::StrJoin(differences, "; ")));
}

absl::StatusOr<HostedJob*> PsService::FindOrStartJob(const ps::ConnectRequest& request) {
  if (job_ == nullptr) {
    if (request.begun())
      return absl::FailedPreconditionError(
          absl::StrCat("server 0 goes on with a job of which this server knows nothing",
                       journal_ == nullptr ? "" : absl::StrCat(": ", journal_->data_dir(), " was empty or had ended"),
                       "; start every server on the data_dir that it had, or all of them on empty ones"));
    // A job that any worker could make would be one that a misled worker can make for the others.
    if (request.worker().rank() != 0)
      return absl::UnavailableError("worker 0 brings the job, and has not connected to this server yet");
    RETURN_IF_ERROR(StartJob(request));
    return job_.get();
  }
  if (request.job_id() != 0 && request.job_id() != job_id_)
    return absl::FailedPreconditionError(
        "this server goes on with another job than server 0; start all servers on the data_dirs of one job, or all of "
        "them on empty ones");
  return job_.get();
}

grpc::Status PsService::Connect(grpc::ServerContext* context, const ps::ConnectRequest* request,
                                ps::ConnectReply* reply) {
  const auto join = [&]() -> absl::Status {
    if (request->worker().rank() == 0) RETURN_IF_ERROR(CheckFirstWorker(guard_.Of(*context)));
    if (request->worker().incarnation() == 0) return absl::InvalidArgumentError("the worker has no incarnation");
    ASSIGN_OR_RETURN(HostedJob* const job, JoinJob(*request));
    ASSIGN_OR_RETURN(const std::string predecessor, job->Admit(ToIdentity(request->worker())));
    reply->set_incarnation(incarnation_);
    {
      base::MutexLock lock(mu_);
      reply->set_job_id(job_id_);
    }
    reply->set_begun(!job->rendezvous().over().empty());
    reply->set_rows(job->rows());
    reply->set_durable(job->durable());
    reply->set_before(predecessor);
    if (job->returns()) TellProgress(*job, static_cast<int>(request->worker().rank()), *reply);
    if (const auto& loaded = job->loaded(); loaded.has_value()) {
      reply->mutable_loaded()->set_epochs(loaded->epochs);
      reply->mutable_loaded()->set_steps(loaded->steps);
      reply->mutable_loaded()->set_identity(loaded->identity);
    }
    return absl::OkStatus();
  };
  absl::Status status = join();
  if (absl::IsUnavailable(status)) {
    reply->set_wait(std::string(status.message()));
    return Answer(absl::OkStatus());
  }
  if (absl::IsFailedPrecondition(status) && journal_ != nullptr && !journal_->entries().empty())
    status = absl::FailedPreconditionError(absl::StrCat(status.message(), " (this server goes on with the job in ",
                                                        journal_->data_dir(), "; remove it to begin another)"));
  if (!status.ok())
    LOG(WARNING) << "refused worker " << request->worker().rank() << ": "
                 << base::Printable(std::string(status.message()));
  return Answer(status);
}

grpc::Status PsService::Answer(const absl::Status& status) const {
  const absl::Status held = Held();
  return wire::ToGrpc(held.ok() ? status : held);
}

absl::StatusOr<HostedJob*> PsService::JobOf(const ps::WorkerId& worker) const {
  HostedJob* const hosted = job();
  if (hosted == nullptr)
    return absl::FailedPreconditionError(
        "this server has no job: no worker has connected to it, or it came back without the data_dir that it had");
  RETURN_IF_ERROR(CheckJob(worker));
  RETURN_IF_ERROR(hosted->roster().Check(ToIdentity(worker)));
  return hosted;
}

absl::Status PsService::CheckJob(const ps::WorkerId& worker) const {
  base::MutexLock lock(mu_);
  if (worker.job() == 0 || worker.job() == job_id_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this server has another job than that of worker ", worker.rank(),
      journal_ == nullptr
          ? "; it was started anew meanwhile"
          : absl::StrCat(", the one in ", journal_->data_dir(), "; start it on the data_dir that it had")));
}

grpc::Status PsService::RawLane(grpc::ServerContext* context, wire::LaneStream* stream) {
  return Answer(ServeLane(context, stream));
}

absl::Status PsService::ServeLane(grpc::ServerContext* context, wire::LaneStream* stream) {
  const HostedJob* const begun = job();
  const size_t most =
      begun == nullptr ? 0
                       : static_cast<size_t>(begun->spec().workers) * static_cast<size_t>(begun->spec().lanes.lanes());
  LaneRegister::Opening opening(
      lanes_, context->peer(), [context] { context->TryCancel(); }, most);
  grpc::ByteBuffer request;
  wire::FrameSeal in, out;
  if (!stream->Read(&request)) return absl::InvalidArgumentError("a lane begins with HELLO");
  RETURN_IF_ERROR(in.Check(request));
  ps::FrameHeader hello;
  {
    wire::FrameReader frame(request);
    RETURN_IF_ERROR(frame.Open());
    hello = frame.header();
  }
  if (hello.verb() != ps::HELLO) return absl::InvalidArgumentError("a lane begins with HELLO");
  ASSIGN_OR_RETURN(HostedJob* const hosted, JobOf(hello.worker()));
  if (hello.lane() >= static_cast<uint32_t>(hosted->spec().lanes.lanes()))
    return absl::InvalidArgumentError(absl::StrCat("there is no lane ", hello.lane()));
  // Twice as many as it needs: a worker that reconnects may be faster than the end of its old connection.
  RETURN_IF_ERROR(opening.Greet(static_cast<int>(hello.worker().rank()), 2 * hosted->spec().lanes.lanes(),
                                hello.worker().incarnation()));
  hosted->roster().Reached(ToIdentity(hello.worker()));
  stream->Join(static_cast<int>(hello.worker().rank()), hosted->spec().lanes.sparse_lanes);
  // Before the welcome: of two streams that a worker opens one after the other, the second is the newer one.
  LaneSession session(*hosted, ToIdentity(hello.worker()), static_cast<int>(hello.lane()), guard_.Of(*context),
                      [stream] { return stream->Cancelled(); });
  ps::FrameHeader welcome;
  welcome.set_id(hello.id());
  RETURN_IF_ERROR(Held());
  if (!stream->Write(out.Put(wire::FrameWriter(welcome, 0).Finish()))) return absl::OkStatus();
  absl::Status carried;
  while (stream->Read(&request)) {
    carried = in.Check(request);
    if (!carried.ok()) break;  // the worker opens another stream, and sends again what was not answered
    const grpc::ByteBuffer reply = out.Put(session.Answer(request));
    if (session.superseded())  // a worker that still reads this stream opens another, and sends again
      return absl::UnavailableError("a newer stream of the lane has taken over");
    RETURN_IF_ERROR(base::Failpoint("lane.reply"));
    request.Clear();
    RETURN_IF_ERROR(Held());
    if (!stream->Write(reply)) break;
  }
  // A worker that ends says goodbye before it closes its lanes; this one was killed, or its network is gone.
  hosted->roster().Suspect(ToIdentity(hello.worker()));
  return carried;
}

grpc::Status PsService::Gather(grpc::ServerContext* context, ps::GatherRequest* request, ps::GatherReply* reply) {
  const auto gather = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(HostedJob* const hosted, JobOf(request->worker()));
    if (request->payload().size() > Rendezvous::kMostBytes || request->name().size() > kMaxNameBytes)
      return absl::ResourceExhaustedError(absl::StrCat(
          "all-gather takes ", Rendezvous::kMostBytes, " bytes of a worker and a name of ", kMaxNameBytes,
          ", and was given ", request->payload().size(), " and ", request->name().size(), "; gather less at a time"));
    ASSIGN_OR_RETURN(
        const auto payloads,
        hosted->rendezvous().AllGather(
            ToIdentity(request->worker()), request->name(), request->round(), std::move(*request->mutable_payload()),
            std::chrono::duration<double>(request->timeout()), [&] { return context->IsCancelled(); },
            request->failed() ? Outcome::kFailure : Outcome::kResult));
    for (const auto& [rank, payload] : *payloads) {
      reply->add_ranks(static_cast<uint32_t>(rank));
      if (request->wants_all()) reply->add_payloads(payload);
    }
    return absl::OkStatus();
  };
  return Answer(gather());
}

grpc::Status PsService::Heartbeat(grpc::ServerContext*, const ps::HeartbeatRequest* request,
                                  ps::HeartbeatReply* reply) {
  const auto hosted = JobOf(request->worker());
  if (!hosted.ok()) return Answer(hosted.status());
  if (request->progress().ByteSizeLong() > kMaxProgressBytes)  // fields that this version does not know
    return wire::ToGrpc(absl::ResourceExhaustedError("the heartbeat is too long"));
  Roster& roster = (*hosted)->roster();
  roster.Heard(ToIdentity(request->worker()), request->progress());
  if (request->stopping()) roster.AskToStop();
  reply->set_stopping(roster.stopping());
  if (!request->wants_all()) return grpc::Status::OK;
  for (const Member& member : roster.members()) {
    if (member.state != MemberState::kHere) continue;
    reply->add_ranks(static_cast<uint32_t>(member.id.rank));
    *reply->add_progress() = member.progress;
    reply->add_silence(base::SecondsSince(member.heard));
  }
  return grpc::Status::OK;
}

grpc::Status PsService::Goodbye(grpc::ServerContext*, const ps::GoodbyeRequest* request, ps::GoodbyeReply*) {
  HostedJob* const hosted = job();
  if (hosted == nullptr) return grpc::Status::OK;
  if (request->failed())
    LOG(WARNING) << "worker " << request->worker().rank()
                 << " gives up: " << base::Printable(request->reason().substr(0, 1024));
  hosted->roster().Leave(ToIdentity(request->worker()), request->failed() ? Farewell::kGaveUp : Farewell::kDone);
  return Answer(absl::OkStatus());
}

grpc::Status PsService::Status(grpc::ServerContext*, const ps::StatusRequest*, ps::StatusReply* reply) {
  reply->set_protocol(wire::kProtocolVersion);
  reply->set_uptime(base::SecondsSince(start_));
  reply->set_resident_bytes(metrics::ResidentBytes());
  if (const HostedJob* const hosted = job()) FillStatus(*hosted, *reply);
  return grpc::Status::OK;
}

void PsService::Finish(JobEnd end) {
  base::MutexLock lock(mu_);
  compactor_.reset();
  if (job_ != nullptr && end == JobEnd::kForgotten) job_->End();
}

void PsService::Collect(metrics::Exposition& out) const {
  out.Gauge("regatta_server_uptime_seconds", "Since the server began to listen.", base::SecondsSince(start_));
  if (const HostedJob* const hosted = job()) CollectJob(*hosted, out);
}

}  // namespace regatta::server
