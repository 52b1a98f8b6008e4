#include "server/hosted_job.h"

#include "absl/strings/str_join.h"
#include "table/checkpoint/checkpoint_reader.h"
#include "table/checkpoint/save_list.h"
#include "table/checkpoint/schema_difference.h"

namespace regatta::server {

HostedJob::HostedJob(const JobSpec& spec, int server)
    : spec_(spec),
      server_(server),
      roster_(spec.workers, spec.loss_policy),
      rendezvous_(roster_),
      traffic_(spec.lanes.lanes()) {}

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

wire::Range HostedJob::shards() const {
  return {spec_.lanes.Shards(server_, 0).begin, spec_.lanes.Shards(server_, spec_.lanes.sparse_lanes - 1).end};
}

absl::Status HostedJob::LoadFrom(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string folder, table::ResolveSave(path));
  ASSIGN_OR_RETURN(const table::CheckpointReader reader, table::CheckpointReader::Open(folder));
  table::ModelTables wanted;
  for (const auto& table : sparse_) wanted.sparse.push_back(table.get());
  wanted.dense = dense_.get();
  const std::vector<std::string> differences =
      table::SchemaDifferences(reader.manifest(), wanted, table::LoadKind::kTraining);
  if (!differences.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " does not fit the job: ", absl::StrJoin(differences, "; ")));
  const wire::Range own = shards();
  for (const auto& table : sparse_) {
    const auto index =
        static_cast<size_t>(reader.manifest().FindSparse(table->config().name) - reader.manifest().sparse.data());
    RETURN_IF_ERROR(reader.ForEachBlock(
        index, [&](uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows) -> absl::Status {
          return own.Contains(shard) ? table->Load(shard, keys, rows) : absl::OkStatus();
        }));
  }
  ASSIGN_OR_RETURN(const int64_t size, table::DenseTable::SizeOf(spec_.tables.dense));
  const auto begin = static_cast<uint64_t>(spec_.lanes.DenseBlock(server_, size).begin);
  std::vector<float> values(static_cast<size_t>(dense_->size()));
  std::vector<std::vector<float>> states(static_cast<size_t>(dense_->state_count()), values);
  RETURN_IF_ERROR(reader.ReadDense(0, begin, values));
  for (uint32_t i = 0; i < states.size(); ++i) RETURN_IF_ERROR(reader.ReadDense(i + 1, begin, states[i]));
  return dense_->Load(values, states, reader.manifest().dense->updates);
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
