#include "client/remote_model.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "checkpoint/new_rows.h"
#include "checkpoint/schema_difference.h"
#include "table/accessor/accessor_factory.h"
#include "table/dense_table.h"
#include "table/rule/rule.h"
#include "table/sparse_table.h"

namespace regatta::client {
namespace {

constexpr uint64_t kRowsARequest = 100'000;
constexpr int kLoadsInFlight = 8;
constexpr size_t kFillBytes = 1 << 20;

// The lane of a virtual shard: server and index.
std::pair<int, int> LaneOf(const wire::LaneMap& map, int64_t shard) {
  for (int server = 0; server < map.servers; ++server)
    for (int lane = 0; lane < map.sparse_lanes; ++lane)
      if (map.Shards(server, lane).Contains(shard)) return {server, lane};
  return {0, 0};
}

}  // namespace

class RemoteModel::Rows final : public checkpoint::RowSource {
 public:
  Rows(GrpcClient& client, uint64_t snapshot, int table, int row_width, int pull_width,
       std::vector<uint64_t> shard_rows)
      : client_(client),
        snapshot_(snapshot),
        table_(table),
        row_width_(row_width),
        pull_width_(pull_width),
        shard_rows_(std::move(shard_rows)) {}

  const table::SparseTableConfig& config() const override {
    return client_.tables().sparse[static_cast<size_t>(table_)];
  }
  int row_width() const override { return row_width_; }
  int pull_width() const override { return pull_width_; }
  uint64_t ShardRows(uint32_t shard) const override { return shard_rows_[shard]; }

  absl::Status ForEachRow(uint32_t shard, const table::SparseTable::RowFn& fn) const override {
    const auto [server, lane] = LaneOf(client_.lanes(), shard);
    const auto width = static_cast<size_t>(row_width_);
    std::vector<base::Key> keys;
    std::vector<float> rows;
    for (uint64_t first = 0; first < shard_rows_[shard]; first += keys.size()) {
      ps::FrameHeader header;
      header.set_verb(ps::READ_ROWS);
      header.set_cut(snapshot_);
      header.set_shard(shard);
      header.set_step(first);
      header.set_count(kRowsARequest);
      header.add_sections()->set_table(static_cast<uint32_t>(table_));
      Call call;
      call.Expect(1);
      client_.lane(server, lane)
          .Send(
              header, 0, [](wire::FrameWriter&) {},
              [&](wire::FrameReader& reply) -> absl::Status {
                const uint64_t count = reply.header().count();
                if (count == 0 || reply.body_left() != count * (sizeof(base::Key) + width * sizeof(float)))
                  return absl::DataLossError("the server's rows do not add up");
                keys.resize(count);
                rows.resize(count * width);
                RETURN_IF_ERROR(reply.Read(keys.data(), count * sizeof(base::Key)));
                return reply.Read(rows.data(), rows.size() * sizeof(float));
              },
              call);
      RETURN_IF_ERROR(call.Wait());
      for (size_t i = 0; i < keys.size(); ++i) fn(keys[i], {rows.data() + i * width, width});
    }
    return absl::OkStatus();
  }

  checkpoint::Visits visits() const override {
    return snapshot_ == 0 ? checkpoint::Visits::kAny : checkpoint::Visits::kOne;
  }

 private:
  GrpcClient& client_;
  const uint64_t snapshot_;
  const int table_;
  const int row_width_;
  const int pull_width_;
  const std::vector<uint64_t> shard_rows_;
};

absl::StatusOr<std::vector<std::vector<uint64_t>>> RemoteModel::ShardRows() {
  const auto tables = static_cast<size_t>(client_.sparse_tables());
  std::vector<std::vector<uint64_t>> rows(tables, std::vector<uint64_t>(base::kVirtualShards));
  Call call;
  for (int server = 0; server < client_.lanes().servers; ++server) {
    for (int lane = 0; lane < client_.lanes().sparse_lanes; ++lane) {
      const wire::Range shards = client_.lanes().Shards(server, lane);
      ps::FrameHeader header;
      header.set_verb(ps::COUNT_ROWS);
      header.set_cut(snapshot_);
      call.Expect(1);
      client_.lane(server, lane)
          .Send(
              header, 0, [](wire::FrameWriter&) {},
              [&rows, shards](wire::FrameReader& reply) -> absl::Status {
                for (std::vector<uint64_t>& table : rows)
                  RETURN_IF_ERROR(
                      reply.Read(table.data() + shards.begin, static_cast<size_t>(shards.size()) * sizeof(uint64_t)));
                return absl::OkStatus();
              },
              call);
    }
  }
  RETURN_IF_ERROR(call.Wait());
  return rows;
}

absl::StatusOr<std::vector<uint64_t>> RemoteModel::CountRows() {
  ASSIGN_OR_RETURN(const auto shards, ShardRows());
  std::vector<uint64_t> totals;
  for (const std::vector<uint64_t>& table : shards) {
    uint64_t total = 0;
    for (const uint64_t rows : table) total += rows;
    totals.push_back(total);
  }
  return totals;
}

absl::StatusOr<int> RemoteModel::StateCount() const {
  ASSIGN_OR_RETURN(const auto rule, table::MakeDenseRule(client_.tables().dense.rule));
  return rule->state_count();
}

absl::Status RemoteModel::ReadDense() {
  ASSIGN_OR_RETURN(const int states, StateCount());
  dense_.assign(static_cast<size_t>(1 + states), std::vector<float>(static_cast<size_t>(client_.dense_size())));
  Call call;
  for (int server = 0; server < client_.lanes().servers; ++server) {
    const wire::Range block = client_.lanes().DenseBlock(server, client_.dense_size());
    for (size_t array = 0; array < dense_.size(); ++array) {
      ps::FrameHeader header;
      header.set_verb(ps::READ_DENSE);
      header.set_cut(snapshot_);
      header.set_shard(static_cast<uint32_t>(array));
      float* const out = dense_[array].data() + block.begin;
      call.Expect(1);
      client_.lane(server, client_.lanes().dense_lane())
          .Send(
              header, 0, [](wire::FrameWriter&) {},
              [this, server, out, block](wire::FrameReader& reply) -> absl::Status {
                if (server == 0) dense_updates_ = reply.header().count();
                return reply.Read(out, static_cast<size_t>(block.size()) * sizeof(float));
              },
              call);
    }
  }
  return call.Wait();
}

absl::StatusOr<checkpoint::SaveContents> RemoteModel::Contents() {
  checkpoint::SaveContents contents;
  ASSIGN_OR_RETURN(auto shard_rows, ShardRows());
  rows_.clear();
  for (int t = 0; t < client_.sparse_tables(); ++t) {
    const table::SparseTableConfig& config = client_.tables().sparse[static_cast<size_t>(t)];
    ASSIGN_OR_RETURN(const auto accessor, table::MakeAccessor(config));
    rows_.push_back(std::make_unique<Rows>(client_, snapshot_, t, accessor->row_width(), accessor->pull_width(),
                                           std::move(shard_rows[static_cast<size_t>(t)])));
    contents.sparse.push_back(rows_.back().get());
  }
  RETURN_IF_ERROR(ReadDense());
  checkpoint::DenseContents& dense = contents.dense.emplace();
  dense.config = client_.tables().dense;
  dense.updates = dense_updates_;
  for (const std::vector<float>& array : dense_) dense.arrays.push_back(array);
  return contents;
}

// Empty tables of the model's configuration stand in for the servers': the differences are those of configurations.
absl::Status RemoteModel::CheckFits(const checkpoint::CheckpointReader& reader, checkpoint::LoadKind kind) const {
  std::vector<std::unique_ptr<table::SparseTable>> sparse;
  checkpoint::ModelTables wanted;
  for (const table::SparseTableConfig& config : client_.tables().sparse) {
    ASSIGN_OR_RETURN(auto made, table::SparseTable::Create(config));
    wanted.sparse.push_back(made.get());
    sparse.push_back(std::move(made));
  }
  ASSIGN_OR_RETURN(const auto dense, table::DenseTable::Create(client_.tables().dense));
  wanted.dense = dense.get();
  const std::vector<std::string> differences = checkpoint::SchemaDifferences(reader.manifest(), wanted, kind);
  if (differences.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(reader.folder(), " does not fit this model: ", absl::StrJoin(differences, "; ")));
}

absl::Status RemoteModel::LoadFrom(const checkpoint::CheckpointReader& reader, checkpoint::LoadKind kind) {
  if (snapshot_ != 0) return absl::FailedPreconditionError("a snapshot of the servers' tables cannot be filled");
  if (kind != checkpoint::LoadKind::kTraining)
    return absl::UnimplementedError("servers are filled for training; inference loads a save in its own process");
  RETURN_IF_ERROR(CheckFits(reader, kind));
  Call call;
  client_.Clear(call);
  RETURN_IF_ERROR(call.Wait());
  RETURN_IF_ERROR(LoadRows(reader));
  return LoadDense(reader);
}

// Sends rows of one table, some requests ahead of the servers.
class RemoteModel::RowSender {
 public:
  RowSender(GrpcClient& client, size_t table) : client_(client), table_(table) {}

  absl::Status Send(uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows) {
    const auto [server, lane] = LaneOf(client_.lanes(), shard);
    ps::FrameHeader header;
    header.set_verb(ps::LOAD_ROWS);
    header.set_shard(shard);
    ps::Section* section = header.add_sections();
    section->set_table(static_cast<uint32_t>(table_));
    section->set_keys(static_cast<uint32_t>(keys.size()));
    section->set_width(static_cast<uint32_t>(rows.size() / keys.size()));
    call_.Expect(1);
    client_.lane(server, lane)
        .Send(
            header, keys.size_bytes() + rows.size_bytes(),
            [&](wire::FrameWriter& writer) {
              writer.Append(keys.data(), keys.size_bytes());
              writer.Append(rows.data(), rows.size_bytes());
            },
            nullptr, call_);
    if (++in_flight_ < kLoadsInFlight) return absl::OkStatus();
    return Wait();
  }
  absl::Status Wait() {
    in_flight_ = 0;
    return call_.Wait();
  }

 private:
  GrpcClient& client_;
  const size_t table_;
  Call call_;
  int in_flight_ = 0;
};

absl::Status RemoteModel::LoadRows(const checkpoint::CheckpointReader& reader) {
  for (size_t t = 0; t < client_.tables().sparse.size(); ++t) {
    const auto& saved = reader.manifest().sparse;
    const auto* found = reader.manifest().FindSparse(client_.tables().sparse[t].name);
    if (found == nullptr) continue;
    RowSender sender(client_, t);
    RETURN_IF_ERROR(reader.ForEachBlock(static_cast<size_t>(found - saved.data()),
                                        [&](uint32_t shard, std::span<const base::Key> keys,
                                            std::span<const float> rows) { return sender.Send(shard, keys, rows); }));
    RETURN_IF_ERROR(sender.Wait());
  }
  return absl::OkStatus();
}

absl::Status RemoteModel::FillRows(size_t table, std::span<const base::Key> keys, std::span<const float> weights) {
  if (snapshot_ != 0) return absl::FailedPreconditionError("a snapshot of the servers' tables cannot be filled");
  ASSIGN_OR_RETURN(const checkpoint::NewRows rows,
                   checkpoint::NewRows::Make(client_.tables().sparse[table], keys, weights));
  RowSender sender(client_, table);
  RETURN_IF_ERROR(
      rows.ForEachBlock(kFillBytes, [&](uint32_t shard, std::span<const base::Key> block,
                                        std::span<const float> values) { return sender.Send(shard, block, values); }));
  return sender.Wait();
}

absl::Status RemoteModel::LoadDense(const checkpoint::CheckpointReader& reader) {
  if (!reader.manifest().dense.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int states, StateCount());
  std::vector<std::vector<float>> arrays(static_cast<size_t>(1 + states),
                                         std::vector<float>(static_cast<size_t>(client_.dense_size())));
  for (size_t i = 0; i < arrays.size(); ++i) RETURN_IF_ERROR(reader.ReadDense(static_cast<uint32_t>(i), 0, arrays[i]));
  return SendDense(arrays, reader.manifest().dense->updates);
}

absl::Status RemoteModel::FillDense(std::span<const float> values) {
  if (snapshot_ != 0) return absl::FailedPreconditionError("a snapshot of the servers' tables cannot be filled");
  RETURN_IF_ERROR(checkpoint::CheckDenseSize(values.size(), static_cast<size_t>(client_.dense_size())));
  ASSIGN_OR_RETURN(const int states, StateCount());
  std::vector<std::vector<float>> arrays(static_cast<size_t>(1 + states), std::vector<float>(values.size()));
  arrays.front().assign(values.begin(), values.end());
  return SendDense(arrays, 0);
}

absl::Status RemoteModel::SendDense(std::span<const std::vector<float>> arrays, uint64_t updates) {
  Call call;
  for (int server = 0; server < client_.lanes().servers; ++server) {
    const wire::Range block = client_.lanes().DenseBlock(server, client_.dense_size());
    const size_t bytes = static_cast<size_t>(block.size()) * sizeof(float);
    ps::FrameHeader header;
    header.set_verb(ps::LOAD_DENSE);
    header.set_count(updates);
    call.Expect(1);
    client_.lane(server, client_.lanes().dense_lane())
        .Send(
            header, bytes * arrays.size(),
            [&](wire::FrameWriter& writer) {
              for (const std::vector<float>& array : arrays) writer.Append(array.data() + block.begin, bytes);
            },
            nullptr, call);
  }
  return call.Wait();
}

}  // namespace regatta::client
