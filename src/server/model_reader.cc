#include "server/model_reader.h"

#include <algorithm>

#include "wire/frame.h"

namespace regatta::server {

ModelReader::Reply ModelReader::CountRows(const ps::FrameHeader& header) const {
  ps::FrameHeader reply;
  reply.set_id(header.id());
  const auto shards = static_cast<size_t>(shards_.size());
  std::vector<uint64_t> counts;
  if (const uint64_t snapshot = header.cut(); snapshot != 0) {
    ASSIGN_OR_RETURN(counts, job_.snapshot().CountRows(snapshot, shards_));
  } else {
    for (int table = 0; table < job_.sparse_tables(); ++table)
      for (int64_t shard = shards_.begin; shard < shards_.end; ++shard)
        counts.push_back(job_.sparse(table).ShardRows(static_cast<uint32_t>(shard)));
  }
  reply.set_count(shards);
  wire::FrameWriter writer(reply, counts.size() * sizeof(uint64_t));
  writer.Append(counts.data(), counts.size() * sizeof(uint64_t));
  return writer.Finish();
}

absl::Status ModelReader::CheckShard(const ps::FrameHeader& header) const {
  if (header.sections_size() != 1 || header.sections(0).table() >= static_cast<uint32_t>(job_.sparse_tables()))
    return absl::InvalidArgumentError("the request names no table");
  if (shards_.Contains(header.shard())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("virtual shard ", header.shard(), " is not this lane's"));
}

ModelReader::Reply ModelReader::ReadRows(const ps::FrameHeader& header) const {
  RETURN_IF_ERROR(CheckShard(header));
  const table::SparseTable& table = job_.sparse(header.sections(0).table());
  const auto width = static_cast<size_t>(table.row_width());
  const uint64_t first = header.step();
  const uint64_t most =
      std::min<uint64_t>(std::min<uint64_t>(header.count(), wire::kMaxKeysAFrame),
                         std::max<uint64_t>(1, wire::kMaxPullBytes / (sizeof(base::Key) + width * sizeof(float))));
  std::vector<base::Key> keys;
  std::vector<float> rows;
  if (header.cut() != 0) {
    ASSIGN_OR_RETURN(HostedSnapshot::Rows read,
                     job_.snapshot().ReadRows(header.cut(), static_cast<int>(header.sections(0).table()),
                                              header.shard(), first, most));
    keys = std::move(read.keys);
    rows = std::move(read.rows);
  } else {
    uint64_t at = 0;
    table.ForEachRow(header.shard(), [&](base::Key key, std::span<const float> row) {
      if (at++ < first || keys.size() >= most) return;
      keys.push_back(key);
      rows.insert(rows.end(), row.begin(), row.end());
    });
  }
  ps::FrameHeader reply;
  reply.set_id(header.id());
  reply.set_count(keys.size());
  wire::FrameWriter writer(reply, keys.size() * sizeof(base::Key) + rows.size() * sizeof(float));
  writer.Append(keys.data(), keys.size() * sizeof(base::Key));
  writer.Append(rows.data(), rows.size() * sizeof(float));
  return writer.Finish();
}

ModelReader::Reply ModelReader::ReadDense(const ps::FrameHeader& header) const {
  const table::DenseTable& dense = job_.dense();
  if (header.shard() > static_cast<uint32_t>(dense.state_count()))
    return absl::InvalidArgumentError(absl::StrCat("there is no dense array ", header.shard()));
  std::span<const float> values =
      header.shard() == 0 ? dense.Values() : dense.State(static_cast<int>(header.shard()) - 1);
  ps::FrameHeader reply;
  reply.set_id(header.id());
  reply.set_count(dense.updates());
  HostedSnapshot::Dense kept;
  if (header.cut() != 0) {
    ASSIGN_OR_RETURN(kept, job_.snapshot().ReadDense(header.cut(), header.shard()));
    values = kept.values;
    reply.set_count(kept.updates);
  }
  wire::FrameWriter writer(reply, values.size_bytes());
  writer.Append(values.data(), values.size_bytes());
  return writer.Finish();
}

}  // namespace regatta::server
