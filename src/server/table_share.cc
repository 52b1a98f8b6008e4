#include "server/table_share.h"

#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save_list.h"
#include "checkpoint/schema_difference.h"
#include "wire/lanes.h"

namespace regatta::server {
namespace {

wire::Range ShardsOf(const ServerPlace& place) {
  return wire::EvenPart(base::kVirtualShards, place.servers, place.server);
}

absl::StatusOr<checkpoint::CheckpointReader> OpenSave(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string folder, checkpoint::ResolveSave(path));
  return checkpoint::CheckpointReader::Open(folder);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableShare>> TableShare::Create(const table::ModelConfig& configs,
                                                               const ServerPlace& place) {
  if (place.server < 0 || place.server >= place.servers)
    return absl::InvalidArgumentError(absl::StrCat("server ", place.server, " is not one of ", place.servers));
  std::unique_ptr<TableShare> share(new TableShare(configs, place));
  for (const table::SparseTableConfig& config : configs.sparse) {
    ASSIGN_OR_RETURN(auto table, table::SparseTable::Create(config));
    share->sparse_.push_back(std::move(table));
  }
  ASSIGN_OR_RETURN(const int64_t size, table::DenseTable::SizeOf(configs.dense));
  const wire::Range block = wire::EvenPart(size, place.servers, place.server);
  ASSIGN_OR_RETURN(share->dense_, table::DenseTable::CreateBlock(configs.dense, block.begin, block.end));
  return share;
}

absl::Status TableShare::CheckSave(const std::string& path) { return OpenSave(path).status(); }

absl::StatusOr<std::unique_ptr<TableShare>> TableShare::CreateFrom(const std::string& path, const ServerPlace& place) {
  ASSIGN_OR_RETURN(const checkpoint::CheckpointReader reader, OpenSave(path));
  table::ModelConfig configs;
  for (const checkpoint::SavedSparse& saved : reader.manifest().sparse) configs.sparse.push_back(saved.config);
  if (reader.manifest().dense.has_value()) configs.dense = reader.manifest().dense->config;
  ASSIGN_OR_RETURN(auto share, Create(configs, place));
  RETURN_IF_ERROR(share->LoadFrom(path));
  return share;
}

uint64_t TableShare::rows() const {
  uint64_t rows = 0;
  for (const auto& table : sparse_) rows += table->rows();
  return rows;
}

checkpoint::ModelTables TableShare::view() const {
  checkpoint::ModelTables tables;
  for (const auto& table : sparse_) tables.sparse.push_back(table.get());
  tables.dense = dense_.get();
  return tables;
}

absl::Status TableShare::LoadFrom(const std::string& path) {
  ASSIGN_OR_RETURN(const checkpoint::CheckpointReader reader, OpenSave(path));
  RETURN_IF_ERROR(Fill(reader));
  const checkpoint::RunState& run = reader.manifest().run;
  loaded_ = LoadedFrom{run.FinishedEpochs(), run.step, base::HashBytes(checkpoint::FormatManifest(reader.manifest()))};
  return absl::OkStatus();
}

absl::Status TableShare::LoadPart(const std::string& folder) {
  ASSIGN_OR_RETURN(const checkpoint::CheckpointReader reader, checkpoint::CheckpointReader::OpenPart(folder));
  const auto& part = reader.manifest().part;
  if (!part.has_value() || part->server != static_cast<uint32_t>(place_.server) ||
      part->servers != static_cast<uint32_t>(place_.servers))
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " is not of server ", place_.server, " of ", place_.servers));
  return Fill(reader);
}

absl::Status TableShare::Fill(const checkpoint::CheckpointReader& reader) {
  const std::vector<std::string> differences =
      checkpoint::SchemaDifferences(reader.manifest(), view(), checkpoint::LoadKind::kTraining);
  if (!differences.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(reader.folder(), " does not fit the job: ", absl::StrJoin(differences, "; ")));
  const wire::Range shards = ShardsOf(place_);
  for (const auto& table : sparse_) {
    const auto index =
        static_cast<size_t>(reader.manifest().FindSparse(table->config().name) - reader.manifest().sparse.data());
    RETURN_IF_ERROR(reader.ForEachBlock(
        index, [&](uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows) -> absl::Status {
          return shards.Contains(shard) ? table->Load(shard, keys, rows) : absl::OkStatus();
        }));
  }
  ASSIGN_OR_RETURN(const int64_t size, table::DenseTable::SizeOf(configs_.dense));
  const auto begin = static_cast<uint64_t>(wire::EvenPart(size, place_.servers, place_.server).begin);
  std::vector<float> values(static_cast<size_t>(dense_->size()));
  std::vector<std::vector<float>> states(static_cast<size_t>(dense_->state_count()), values);
  RETURN_IF_ERROR(reader.ReadDense(0, begin, values));
  for (uint32_t i = 0; i < states.size(); ++i) RETURN_IF_ERROR(reader.ReadDense(i + 1, begin, states[i]));
  return dense_->Load(values, states, reader.manifest().dense->updates);
}

}  // namespace regatta::server
