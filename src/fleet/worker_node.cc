#include "fleet/worker_node.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "base/incarnation.h"
#include "comm/async.h"
#include "comm/geo.h"
#include "comm/half_async.h"
#include "comm/sync.h"

namespace regatta::fleet {
namespace {

constexpr std::chrono::duration<double> kWaitTimeout{600};
constexpr int kMostMerged = 4096;  // a push names its batches, where workers come back

// As the wire has it.
const char* Name(Ack ack) {
  switch (ack) {
    case Ack::kAuto:
      return "";
    case Ack::kMemory:
      return "memory";
    case Ack::kLogged:
      return "logged";
    case Ack::kSynced:
      return "synced";
  }
  return "";
}

const char* Name(OnLoss on_loss) {
  switch (on_loss) {
    case OnLoss::kFail:
      return "fail";
    case OnLoss::kShrink:
      return "shrink";
    case OnLoss::kAwait:
      return "await";
  }
  return "";
}

const char* Name(table::NanPolicy policy) {
  switch (policy) {
    case table::NanPolicy::kSkip:
      return "skip";
    case table::NanPolicy::kAbort:
      return "abort";
    case table::NanPolicy::kClip:
      return "clip";
  }
  return "";
}

}  // namespace

std::string WhereIs(int64_t pid) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(host, ", pid ", pid);
}

const char* Name(Mode mode) {
  switch (mode) {
    case Mode::kSync:
      return "sync";
    case Mode::kAsync:
      return "async";
    case Mode::kHalfAsync:
      return "half_async";
    case Mode::kGeo:
      return "geo";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<WorkerNode>> WorkerNode::Start(const WorkerOptions& options) {
  if (options.on_loss == OnLoss::kAwait && options.half_async_merge > kMostMerged)
    return absl::InvalidArgumentError(absl::StrCat("workers that come back push at most ", kMostMerged,
                                                   " batches as one (half_async_merge: ", options.half_async_merge,
                                                   ")"));
  client::ClientOptions client;
  client.servers = options.servers;
  client.worker.set_rank(static_cast<uint32_t>(options.rank));
  client.worker.set_incarnation(base::NewIncarnation());
  client.worker.set_where(WhereIs(getpid()));
  client.job.set_mode(Name(options.mode));
  client.job.set_workers(static_cast<uint32_t>(options.workers));
  client.job.set_sparse_lanes(static_cast<uint32_t>(options.sparse_lanes));
  client.job.set_nan_policy(Name(options.nan_policy));
  client.job.set_on_worker_loss(Name(options.on_loss));
  if (options.on_loss == OnLoss::kAwait) client.job.set_worker_wait(static_cast<uint32_t>(options.worker_wait.count()));
  client.job.set_ack(Name(options.ack));
  client.job.mutable_settings()->insert(options.settings.begin(), options.settings.end());
  // A step of sync is a batch of every thread, so that workers with more of them have fewer steps.
  if (options.mode == Mode::kSync) (*client.job.mutable_settings())["threads"] = absl::StrCat(options.threads);
  client.tables = options.tables;
  client.precision = options.short_rows ? ps::BFLOAT16 : ps::FLOAT32;
  const auto wait_timeout = options.wait_timeout.value_or(kWaitTimeout);
  client.wait_timeout = wait_timeout;
  client.cancelled = options.cancelled;
  client.credentials = options.credentials;
  ASSIGN_OR_RETURN(auto connected, client::GrpcClient::Connect(client));
  std::unique_ptr<WorkerNode> worker(new WorkerNode(options, std::move(connected)));
  RETURN_IF_ERROR(
      worker->client_
          ->Gather("all workers are here", "", client::GrpcClient::Reply::kNothing, wait_timeout, options.cancelled)
          .status());
  return worker;
}

WorkerNode::~WorkerNode() {
  communicator_.reset();
  client_->Goodbye(absl::CancelledError("the process ends"));
}

absl::StatusOr<comm::Communicator*> WorkerNode::StartCommunicator(uint64_t first_step) {
  std::optional<comm::Resumed> resumed;
  if (resume_point().returns())
    resumed = comm::Resumed{resume_point().position.pass, resume_point().step, resume_point().dense};
  switch (options_.mode) {
    case Mode::kSync:
      communicator_ = std::make_unique<comm::Sync>(
          *client_, [this](const std::string& name, uint64_t value) { return AgreeMax(name, value); }, options_.threads,
          first_step, resumed);
      break;
    case Mode::kAsync:
      communicator_ = std::make_unique<comm::Async>(*client_, options_.threads, options_.staleness, resumed);
      break;
    case Mode::kHalfAsync:
      communicator_ = std::make_unique<comm::HalfAsync>(*client_, options_.threads, options_.half_async_merge,
                                                        options_.staleness, resumed);
      break;
    case Mode::kGeo: {
      if (resumed.has_value())
        LOG(WARNING) << "worker " << rank() << " goes on in geo with the servers' values: what the process before it "
                     << "had not exchanged is lost, and its rules' state begins anew";
      ASSIGN_OR_RETURN(communicator_, comm::Geo::Create(*client_, options_.tables,
                                                        {.threads = options_.threads,
                                                         .workers = options_.workers,
                                                         .interval = options_.geo_interval,
                                                         .combine = options_.geo_combine,
                                                         .nan_policy = options_.nan_policy}));
      break;
    }
  }
  LOG(INFO) << "Communicator start: " << Name(options_.mode) << ", worker " << rank() << " of " << workers();
  return communicator_.get();
}

absl::Status WorkerNode::Barrier(const std::string& name) {
  return client_->Gather(name, "", client::GrpcClient::Reply::kNothing).status();
}

absl::StatusOr<std::map<int, std::string>> WorkerNode::Gather(const std::string& name, const std::string& payload,
                                                              std::optional<uint64_t> round, Outcome outcome) {
  return client_->Gather(
      name, payload, client::GrpcClient::Reply::kPayloads, {}, [] { return false; }, round, outcome);
}

absl::StatusOr<uint64_t> WorkerNode::AgreeMax(const std::string& name, uint64_t value) {
  ASSIGN_OR_RETURN(const auto payloads, Gather(name, absl::StrCat(value)));
  uint64_t most = 0;  // of the payloads alone: of a round that was over before, they are its predecessor's
  for (const auto& [rank, payload] : payloads) {
    uint64_t other = 0;
    if (!absl::SimpleAtoi(payload, &other))
      return absl::InternalError(absl::StrCat("worker ", rank, " brings '", payload, "' to '", name, "'"));
    most = std::max(most, other);
  }
  return most;
}

void WorkerNode::Stop(const absl::Status& why) { client_->Goodbye(why); }

}  // namespace regatta::fleet
