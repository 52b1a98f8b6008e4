#include "server/hosted_job.h"

namespace regatta::server {

HostedJob::HostedJob(const JobSpec& spec, std::unique_ptr<TableShare> tables)
    : spec_(spec),
      tables_(std::move(tables)),
      roster_(spec.workers, spec.loss_policy),
      rendezvous_(roster_),
      traffic_(spec.lanes.lanes()) {}

absl::StatusOr<std::unique_ptr<HostedJob>> HostedJob::Create(const JobSpec& spec, int server) {
  ASSIGN_OR_RETURN(auto tables, TableShare::Create(spec.tables, {server, spec.lanes.servers}));
  return Create(spec, std::move(tables));
}

std::unique_ptr<HostedJob> HostedJob::Create(const JobSpec& spec, std::unique_ptr<TableShare> tables) {
  std::unique_ptr<HostedJob> job(new HostedJob(spec, std::move(tables)));
  if (spec.mode != Mode::kSync) return job;
  for (int lane = 0; lane < spec.lanes.lanes(); ++lane) {
    job->stages_.push_back(std::make_unique<SyncStage>(
        job->roster_, [job = job.get()](const SyncStage::Sum& sum) { return job->Apply(sum); }));
  }
  job->roster_.Listen([job = job.get()] {
    for (const auto& stage : job->stages_) stage->Look();
  });
  return job;
}

wire::Range HostedJob::shards() const {
  return {spec_.lanes.Shards(server(), 0).begin, spec_.lanes.Shards(server(), spec_.lanes.sparse_lanes - 1).end};
}

absl::Status HostedJob::Apply(const SyncStage::Sum& step) {
  const table::PushOptions options{.step = step.step, .samples = step.samples, .nan_policy = spec_.nan_policy};
  for (const base::TableGrads& table : step.tables)
    if (!table.keys.keys.empty()) RETURN_IF_ERROR(sparse(table.keys.table).Push(table, options));
  if (step.dense.empty()) return absl::OkStatus();
  const base::DenseGrad grad{0, step.dense};
  return dense().Push({&grad, 1}, options);
}

}  // namespace regatta::server
