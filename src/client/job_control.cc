#include "client/job_control.h"

#include <glog/logging.h>
#include <grpcpp/completion_queue.h>

#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "checkpoint/schema_json.h"
#include "client/connect_replies.h"
#include "client/grpc_text.h"
#include "wire/frame.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

constexpr std::chrono::milliseconds kGatherPoll(200);
constexpr std::chrono::milliseconds kJoinRest(100);
constexpr std::chrono::seconds kQuietWait(2), kLogWaitEvery(10);  // to be let into the job
constexpr std::chrono::seconds kFarewell(60);                     // for a server that is away: it would miss us

// Tells that others are waited for, ever more seldom. Who they are the first server knows, and says.
class GatherWait {
 public:
  void LogIfDue(const std::string& name) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start_;
    if (waited < next_) return;
    next_ *= 2;
    LOG(INFO) << absl::StrFormat("'%s': waiting %.0f s for other workers; the log of server 0 says for whom", name,
                                 waited.count());
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::duration<double> next_{30};
};

}  // namespace

JobControl::JobControl(const ClientOptions& options) : options_(options) {
  options_.job.set_servers(static_cast<uint32_t>(options_.servers.size()));
  options_.job.set_tables_json(checkpoint::ToJson(options_.tables).dump());
  for (const ServerAddress& server : options_.servers)
    servers_.push_back(std::make_unique<ControlChannel>(static_cast<int>(servers_.size()), server.dense.front(),
                                                        options_.credentials.get(), options_.cancelled));
}

absl::StatusOr<std::unique_ptr<JobControl>> JobControl::Join(const ClientOptions& options, const JobLayout& layout) {
  std::unique_ptr<JobControl> control(new JobControl(options));
  std::vector<NamedChannel> channels;
  for (const auto& server : control->servers_) channels.push_back(server->channel());
  RETURN_IF_ERROR(AwaitServers(channels, options.wait_timeout, options.cancelled, options.credentials.get()));
  LOG(INFO) << "init rpc client with trainer_id " << options.worker.rank();
  // It beats from the first Connect on: while one server is waited for, the others hear of this worker.
  control->heartbeat_ = std::make_unique<Heartbeat>(options.worker, control->servers_);
  RETURN_IF_ERROR(control->JoinServers(layout));
  return control;
}

JobControl::~JobControl() {
  heartbeat_.reset();
  Goodbye(absl::CancelledError("the process ends"));
}

absl::Status JobControl::JoinServers(const JobLayout& layout) {
  std::vector<ps::ConnectReply> replies;
  for (size_t server = 0; server < servers_.size(); ++server) {
    ps::ConnectRequest request;
    if (server > 0) {
      request.set_job_id(replies.front().job_id());
      request.set_begun(replies.front().begun());
    }
    request.set_protocol(wire::kProtocolVersion);
    *request.mutable_worker() = options_.worker;
    request.set_server(static_cast<uint32_t>(server));
    *request.mutable_job() = options_.job;
    ASSIGN_OR_RETURN(ps::ConnectReply reply, Connect(*servers_[server], request));
    ++joined_;
    servers_[server]->set_durable(reply.durable());
    if (server == 0) loaded_ = reply.loaded();
    RETURN_IF_ERROR(CheckSameSave(servers_.front()->name(), loaded_, servers_[server]->name(), reply.loaded()));
    replies.push_back(std::move(reply));
  }
  job_id_ = replies.front().job_id();
  ASSIGN_OR_RETURN(resume_point_, ResumePointOf(replies, layout));
  return absl::OkStatus();
}

absl::StatusOr<ps::ConnectReply> JobControl::Connect(ControlChannel& server, const ps::ConnectRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  auto say = start + kQuietWait;
  while (true) {
    ps::ConnectReply reply;
    const grpc::Status status = server.CallWhileAway(options_.wait_timeout, [&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      return server.stub().Connect(&context, request, &reply);
    });
    if (!status.ok()) return base::Annotate(wire::FromGrpc(status), server.name());
    if (reply.wait().empty()) return reply;
    const std::string waits_for = absl::StrCat(server.name(), ": ", reply.wait());
    const auto now = std::chrono::steady_clock::now();
    if (options_.cancelled()) return absl::CancelledError(waits_for);
    if (now - start > options_.wait_timeout)
      return absl::DeadlineExceededError(
          absl::StrFormat("waited %.0f s: %s", options_.wait_timeout.count(), waits_for));
    if (now > say) {
      LOG(INFO) << "waits: " << waits_for;
      say = now + kLogWaitEvery;
    }
    std::this_thread::sleep_for(kJoinRest);
  }
}

ps::WorkerId JobControl::joined_worker() const {
  ps::WorkerId worker = options_.worker;
  worker.set_job(job_id_);
  return worker;
}

absl::StatusOr<std::map<int, std::string>> JobControl::Gather(const std::string& name, const std::string& payload,
                                                              const GatherOptions& options) {
  ps::GatherRequest request;
  *request.mutable_worker() = joined_worker();
  request.set_name(name);
  request.set_payload(payload);
  request.set_wants_all(options.reply == GatherReply::kPayloads);
  request.set_timeout(options.timeout.count());
  request.set_failed(options.outcome == GatherOutcome::kFailure);
  {
    base::MutexLock lock(mu_);
    uint64_t& next = rounds_[name];
    if (options.round.has_value()) next = *options.round;
    request.set_round(next++);
  }
  ps::GatherReply answer;
  GatherWait wait;
  const grpc::Status status = servers_.front()->CallWhileAway(options_.wait_timeout, [&] {
    grpc::ClientContext context;
    grpc::Status status;
    grpc::CompletionQueue queue;
    const auto call = servers_.front()->stub().AsyncGather(&context, request, &queue);
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool done = false, given_up = false;
    while (queue.AsyncNext(&tag, &done, std::chrono::system_clock::now() + kGatherPoll) ==
           grpc::CompletionQueue::TIMEOUT) {
      given_up = given_up || options.cancelled();
      if (given_up) context.TryCancel();
      wait.LogIfDue(name);
    }
    // A server that ends cuts off the rounds that wait in it. They go on at the one that comes back.
    if (!given_up && SaysCutOff(wire::FromGrpc(status)))
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server ended");
    return status;
  });
  if (!status.ok())
    return base::Annotate(wire::FromGrpc(status), absl::StrCat(servers_.front()->name(), ": '", name, "'"));
  std::map<int, std::string> payloads;
  for (int i = 0; i < answer.payloads_size() && i < answer.ranks_size(); ++i)
    payloads[static_cast<int>(answer.ranks(i))] = answer.payloads(i);
  return payloads;
}

void JobControl::Goodbye(const absl::Status& why) {
  {
    base::MutexLock lock(mu_);
    if (std::exchange(said_goodbye_, true)) return;
  }
  for (size_t server = 0; server < joined_; ++server) {
    ps::GoodbyeRequest request;
    *request.mutable_worker() = options_.worker;
    request.set_failed(!why.ok());
    request.set_reason(std::string(why.message()));
    const grpc::Status status = servers_[server]->CallWhileAway(why.ok() ? kFarewell : std::chrono::seconds(0), [&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
      ps::GoodbyeReply reply;
      return servers_[server]->stub().Goodbye(&context, request, &reply);
    });
    if (!status.ok() && why.ok()) LOG(WARNING) << "goodbye: " << base::Printable(status.error_message());
  }
}

}  // namespace regatta::client
