#include "fleet/worker_node.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "base/incarnation.h"
#include "comm/mode_table.h"

namespace regatta::fleet {
namespace {

constexpr std::chrono::duration<double> kWaitTimeout{600};
constexpr int kMostMerged = 4096;  // a push names its batches, where workers come back

}  // namespace

std::string WhereIs(int64_t pid) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(host, ", pid ", pid);
}

absl::StatusOr<std::unique_ptr<WorkerNode>> WorkerNode::Start(const WorkerOptions& options) {
  if (options.on_loss == base::LossPolicy::kAwait && options.half_async_merge > kMostMerged)
    return absl::InvalidArgumentError(absl::StrCat("workers that come back push at most ", kMostMerged,
                                                   " batches as one (half_async_merge: ", options.half_async_merge,
                                                   ")"));
  client::ClientOptions client;
  client.servers = options.servers;
  client.worker.set_rank(static_cast<uint32_t>(options.rank));
  client.worker.set_incarnation(base::NewIncarnation());
  client.worker.set_where(WhereIs(getpid()));
  client.job.set_mode(base::Name(options.mode));
  client.job.set_workers(static_cast<uint32_t>(options.workers));
  client.job.set_sparse_lanes(static_cast<uint32_t>(options.sparse_lanes));
  client.job.set_nan_policy(table::Name(options.nan_policy));
  client.job.set_on_worker_loss(base::Name(options.on_loss));
  if (options.on_loss == base::LossPolicy::kAwait)
    client.job.set_worker_wait(static_cast<uint32_t>(options.worker_wait.count()));
  if (options.ack.has_value()) client.job.set_ack(base::Name(*options.ack));
  client.job.mutable_settings()->insert(options.settings.begin(), options.settings.end());
  // A worker with more threads would have fewer steps.
  if (base::TraitsOf(options.mode).steps_together())
    (*client.job.mutable_settings())["threads"] = absl::StrCat(options.threads);
  client.tables = options.tables;
  client.precision = options.short_rows ? ps::BFLOAT16 : ps::FLOAT32;
  const auto wait_timeout = options.wait_timeout.value_or(kWaitTimeout);
  client.wait_timeout = wait_timeout;
  client.cancelled = options.cancelled;
  client.given_up = options.given_up;
  client.credentials = options.credentials;
  ASSIGN_OR_RETURN(auto connected, client::Connection::Open(client));
  std::unique_ptr<WorkerNode> worker(new WorkerNode(options, std::move(connected)));
  RETURN_IF_ERROR(
      worker->control()
          .Gather("all workers are here", "",
                  {.reply = client::GatherReply::kNothing, .timeout = wait_timeout, .cancelled = options.cancelled})
          .status());
  return worker;
}

WorkerNode::~WorkerNode() {
  communicator_.reset();
  control().Goodbye(absl::CancelledError("the process ends"));
}

absl::StatusOr<comm::Communicator*> WorkerNode::StartCommunicator(uint64_t first_step) {
  std::optional<comm::Resumed> resumed;
  if (resume_point().returns())
    resumed = comm::Resumed{resume_point().position.pass, resume_point().step, resume_point().dense};
  const comm::CommunicatorOptions options{
      .tables = options_.tables,
      .threads = options_.threads,
      .workers = options_.workers,
      .first_step = first_step,
      .staleness = options_.staleness,
      .half_async_merge = options_.half_async_merge,
      .geo_interval = options_.geo_interval,
      .geo_combine = options_.geo_combine,
      .nan_policy = options_.nan_policy,
      .agree = [this](const std::string& name, uint64_t value) { return AgreeMax(name, value); },
      .resumed = resumed};
  ASSIGN_OR_RETURN(communicator_, comm::MakeCommunicator(options_.mode, connection_->data(), options));
  LOG(INFO) << "Communicator start: " << base::Name(options_.mode) << ", worker " << rank() << " of " << workers();
  return communicator_.get();
}

absl::Status WorkerNode::Barrier(const std::string& name) {
  return control().Gather(name, "", {.reply = client::GatherReply::kNothing}).status();
}

absl::StatusOr<std::map<int, std::string>> WorkerNode::Gather(const std::string& name, const std::string& payload,
                                                              std::optional<uint64_t> round, Outcome outcome) {
  return control().Gather(name, payload, {.round = round, .outcome = outcome});
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

void WorkerNode::Stop(const absl::Status& why) { control().Goodbye(why); }

absl::Status WorkerNode::ReadDense(std::span<float> out) {
  client::PsClient& client = connection_->data();
  RETURN_IF_ERROR(checkpoint::CheckDenseSize(out.size(), static_cast<size_t>(client.dense_size())));
  client::Call call;
  client.PullDense({.kind = base::StepKind::kInfer}, out, call);
  return call.Wait();
}

}  // namespace regatta::fleet
