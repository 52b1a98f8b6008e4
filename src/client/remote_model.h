// The servers' tables as a model that can be saved and filled: rows are streamed a shard at a time, so that this
// process never holds a table. The first worker uses it, either while no worker pushes or on a snapshot.
// Thread-safety: as ModelStore.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/model_store.h"
#include "client/grpc_client.h"

namespace regatta::client {

class RemoteModel final : public checkpoint::ModelStore {
 public:
  // `snapshot`: reads what servers keep under this number (remote_snapshot.h), while others push; such a model cannot
  // be filled.
  explicit RemoteModel(GrpcClient& client, uint64_t snapshot = 0) : client_(client), snapshot_(snapshot) {}

  absl::StatusOr<checkpoint::SaveContents> Contents() override;
  absl::Status LoadFrom(const checkpoint::CheckpointReader& reader, checkpoint::LoadKind kind) override;
  absl::Status FillDense(std::span<const float> values) override;
  absl::Status FillRows(size_t table, std::span<const base::Key> keys, std::span<const float> weights) override;

  // Rows of all servers, by table.
  absl::StatusOr<std::vector<uint64_t>> CountRows();

 private:
  class Rows;
  class RowSender;
  absl::Status CheckFits(const checkpoint::CheckpointReader& reader, checkpoint::LoadKind kind) const;
  absl::StatusOr<std::vector<std::vector<uint64_t>>> ShardRows();
  absl::StatusOr<int> StateCount() const;
  absl::Status ReadDense();
  absl::Status LoadRows(const checkpoint::CheckpointReader& reader);
  absl::Status LoadDense(const checkpoint::CheckpointReader& reader);
  // The values, then each state.
  absl::Status SendDense(std::span<const std::vector<float>> arrays, uint64_t updates);

  GrpcClient& client_;
  const uint64_t snapshot_;  // 0: the tables as they are
  std::vector<std::unique_ptr<checkpoint::RowSource>> rows_;
  std::vector<std::vector<float>> dense_;  // the values, then each state
  uint64_t dense_updates_ = 0;
};

}  // namespace regatta::client
