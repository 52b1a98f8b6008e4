// The servers of a job for the tests of checkpoints: each saves its part of a snapshot.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/key.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/model_snapshot.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::checkpoint {

inline absl::Status SaveSnapshot(const std::string& folder, ModelSnapshot& snapshot, const RunState& run) {
  ASSIGN_OR_RETURN(SaveContents contents, snapshot.Contents());
  contents.run = run;
  RETURN_IF_ERROR(WriteCheckpoint(folder, contents));
  return snapshot.Complete();
}

// Each has its shards and its dense block.
class TestServers {
 public:
  TestServers(const TestModel& like, uint32_t count) : count_(count) {
    const table::DenseTableConfig& dense = like.dense->config();
    const int64_t size = like.dense->size();
    for (uint32_t s = 0; s < count; ++s) {
      Server server;
      for (const auto& table : like.sparse)
        server.sparse.push_back(table::SparseTable::Create(table->config()).value());
      for (const auto& table : server.sparse) table->TrackChanges(table::Tracking::kOn);
      server.dense = table::DenseTable::CreateBlock(dense, size * s / count, size * (s + 1) / count).value();
      servers_.push_back(std::move(server));
    }
  }
  PartRange Shards(uint32_t s) const {
    return {uint64_t{base::kVirtualShards} * s / count_, uint64_t{base::kVirtualShards} * (s + 1) / count_};
  }
  void Load(const CheckpointReader& reader) {
    for (uint32_t s = 0; s < count_; ++s) {
      Server& server = servers_[s];
      const PartRange shards = Shards(s);
      for (size_t t = 0; t < server.sparse.size(); ++t) {
        ASSERT_TRUE(
            reader
                .ForEachBlock(t,
                              [&](uint32_t shard, std::span<const base::Key> keys, std::span<const float> rows) {
                                if (shard < shards.begin || shard >= shards.end) return absl::OkStatus();
                                return server.sparse[t]->Load(shard, keys, rows);
                              })
                .ok());
      }
      std::vector<std::vector<float>> arrays(static_cast<size_t>(1 + server.dense->state_count()),
                                             std::vector<float>(static_cast<size_t>(server.dense->size())));
      for (uint32_t a = 0; a < arrays.size(); ++a)
        ASSERT_TRUE(reader.ReadDense(a, static_cast<uint64_t>(server.dense->begin()), arrays[a]).ok());
      ASSERT_TRUE(server.dense->Load(arrays[0], std::span(arrays).subspan(1), reader.manifest().dense->updates).ok());
    }
  }
  absl::Status SavePartOf(uint32_t s, const std::string& folder, const std::string& snapshot, const std::string& since,
                          const RunState& run) {
    SnapshotOptions options;
    options.part = SavePart{snapshot, s, count_, Shards(s), {}};
    if (!since.empty()) {
      ASSIGN_OR_RETURN(options.base, BaseAt(since + "/" + PartName(s)));
    }
    ModelTables tables;
    for (const auto& table : servers_[s].sparse) tables.sparse.push_back(table.get());
    tables.dense = servers_[s].dense.get();
    ASSIGN_OR_RETURN(const auto begun, ModelSnapshot::Begin(tables, options));
    return SaveSnapshot(folder + "/" + PartName(s), *begun, run);
  }
  void Save(const std::string& folder, const std::string& snapshot, const std::string& since = "") {
    for (uint32_t s = 0; s < count_; ++s) {
      RunState run;
      run.step = 7;
      run.blobs = {{absl::StrCat("windows.", s), "x"}};
      ASSERT_EQ(SavePartOf(s, folder, snapshot, since, run), absl::OkStatus());
    }
  }
  void SetRow(base::Key key, uint32_t bits) {
    for (uint32_t s = 0; s < count_; ++s)
      if (base::ShardOf(key) >= Shards(s).begin && base::ShardOf(key) < Shards(s).end)
        checkpoint::SetRow(*servers_[s].sparse[0], key, {bits});
  }

 private:
  struct Server {
    std::vector<std::unique_ptr<table::SparseTable>> sparse;
    std::unique_ptr<table::DenseTable> dense;
  };
  const uint32_t count_;
  std::vector<Server> servers_;
};

}  // namespace regatta::checkpoint
