// The servers' tables as a model that can be saved and filled: rows are streamed a shard at a time, so that this
// process never holds a table. Used by the first worker, while nobody pushes or of a cut. Thread-safety: as ModelStore.
#pragma once

#include <memory>
#include <vector>

#include "client/grpc_client.h"
#include "table/checkpoint/model_store.h"

namespace regatta::client {

class RemoteModel final : public table::ModelStore {
 public:
  // `cut`: reads what servers keep under this number (remote_cut.h), while others push; such a model cannot be filled.
  explicit RemoteModel(GrpcClient& client, uint64_t cut = 0) : client_(client), cut_(cut) {}

  absl::StatusOr<table::SaveContents> Contents() override;
  absl::Status LoadFrom(const table::CheckpointReader& reader, table::LoadKind kind) override;

  // Rows of all servers, by table.
  absl::StatusOr<std::vector<uint64_t>> CountRows();

 private:
  class Rows;
  absl::Status CheckFits(const table::CheckpointReader& reader, table::LoadKind kind) const;
  absl::StatusOr<std::vector<std::vector<uint64_t>>> ShardRows();
  absl::StatusOr<int> StateCount() const;
  absl::Status ReadDense();
  absl::Status LoadRows(const table::CheckpointReader& reader);
  absl::Status LoadDense(const table::CheckpointReader& reader);

  GrpcClient& client_;
  const uint64_t cut_;  // 0: the tables as they are
  std::vector<std::unique_ptr<table::RowSource>> rows_;
  std::vector<std::vector<float>> dense_;  // the values, then each state
  uint64_t dense_updates_ = 0;
};

}  // namespace regatta::client
