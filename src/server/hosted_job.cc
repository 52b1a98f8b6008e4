#include "server/hosted_job.h"

namespace regatta::server {

HostedJob::HostedJob(const JobSpec& spec, int server)
    : spec_(spec), server_(server), roster_(spec.workers, spec.loss_policy), rendezvous_(roster_) {}

absl::StatusOr<std::unique_ptr<HostedJob>> HostedJob::Create(const JobSpec& spec, int server) {
  if (server < 0 || server >= spec.lanes.servers)
    return absl::InvalidArgumentError(absl::StrCat("server ", server, " is not one of ", spec.lanes.servers));
  std::unique_ptr<HostedJob> job(new HostedJob(spec, server));
  for (const table::SparseTableConfig& config : spec.tables.sparse) {
    ASSIGN_OR_RETURN(auto table, table::SparseTable::Create(config));
    job->sparse_.push_back(std::move(table));
  }
  ASSIGN_OR_RETURN(const int64_t size, table::DenseTable::SizeOf(spec.tables.dense));
  const wire::Range block = spec.lanes.DenseBlock(server, size);
  ASSIGN_OR_RETURN(job->dense_, table::DenseTable::CreateBlock(spec.tables.dense, block.begin, block.end));
  if (spec.mode == Mode::kSync) {
    for (int lane = 0; lane < spec.lanes.lanes(); ++lane) {
      job->stages_.push_back(std::make_unique<SyncStage>(
          job->roster_, [job = job.get()](const SyncStage::Sum& sum) { return job->Apply(sum); }));
    }
    job->roster_.Listen([job = job.get()] {
      for (const auto& stage : job->stages_) stage->Look();
    });
  }
  return job;
}

uint64_t HostedJob::rows() const {
  uint64_t rows = 0;
  for (const auto& table : sparse_) rows += table->rows();
  return rows;
}

absl::Status HostedJob::Apply(const SyncStage::Sum& step) {
  const table::PushOptions options{.step = step.step, .samples = step.samples, .nan_policy = spec_.nan_policy};
  for (const base::TableGrads& table : step.tables)
    if (!table.keys.keys.empty()) RETURN_IF_ERROR(sparse(table.keys.table).Push(table, options));
  if (step.dense.empty()) return absl::OkStatus();
  const base::DenseGrad grad{0, step.dense};
  return dense_->Push({&grad, 1}, options);
}

}  // namespace regatta::server
