#include "server/hosted_snapshot.h"

#include <glog/logging.h>

#include <algorithm>

#include "base/failpoint.h"

namespace regatta::server {
namespace {

constexpr size_t kRecent = 32;  // shards; a reader that was cut off asks for its last few again

}  // namespace

absl::Status HostedSnapshot::Begin(uint64_t number, const Identity& reader) {
  if (number == 0) return absl::InvalidArgumentError("a snapshot has a number above 0");
  RETURN_IF_ERROR(base::Failpoint("snapshot.begin"));
  base::MutexLock lock(mu_);
  asked_ = std::chrono::steady_clock::now();
  if (snapshot_ != nullptr && snapshot_->number == number && snapshot_->incarnation == reader.incarnation)
    return absl::OkStatus();
  if (!lock_.TryTake())
    return absl::AbortedError(snapshot_ != nullptr ? "another checkpoint of the job is being read"
                                                   : "the server writes a checkpoint of its own");
  auto snapshot = std::make_shared<Snapshot>(lock_);
  snapshot->number = number;
  snapshot->incarnation = reader.incarnation;
  {
    const WriteGateClosed closed(gate_);
    ASSIGN_OR_RETURN(snapshot->snapshot, checkpoint::ModelSnapshot::Begin(tables_, {}));
  }
  {
    base::MutexLock visits(snapshot->mu);
    snapshot->visited.assign(tables_.sparse.size(), std::vector<bool>(base::kVirtualShards));
  }
  ASSIGN_OR_RETURN(snapshot->contents, snapshot->snapshot->Contents());
  snapshot_ = std::move(snapshot);
  reader_ = reader.rank;
  begun_ = true;
  return absl::OkStatus();
}

void HostedSnapshot::End(uint64_t number) {
  base::MutexLock lock(mu_);
  if (snapshot_ == nullptr || snapshot_->number != number) return;
  snapshot_.reset();
  begun_ = false;
}

void HostedSnapshot::Release(const char* why) {
  base::MutexLock lock(mu_);
  if (snapshot_ == nullptr) return;
  LOG(WARNING) << "gave up snapshot " << snapshot_->number << " of the job: " << why;
  snapshot_.reset();
  begun_ = false;
}

void HostedSnapshot::ReleaseIfAbandoned(bool reader_is_here) {
  bool late = false;
  {
    base::MutexLock lock(mu_);
    late = std::chrono::steady_clock::now() - asked_ > kReaderTimeout;
  }
  if (!reader_is_here) Release("its reader has left the job");
  if (late) Release("its reader has not asked for a minute");
}

absl::StatusOr<std::shared_ptr<HostedSnapshot::Snapshot>> HostedSnapshot::Find(uint64_t number) {
  base::MutexLock lock(mu_);
  if (snapshot_ == nullptr || snapshot_->number != number)
    return absl::AbortedError(absl::StrCat("there is no snapshot ", number, " of the job here any more"));
  asked_ = std::chrono::steady_clock::now();
  return snapshot_;
}

absl::StatusOr<std::vector<uint64_t>> HostedSnapshot::CountRows(uint64_t number, const wire::Range& shards) {
  ASSIGN_OR_RETURN(const auto snapshot, Find(number));
  std::vector<uint64_t> counts;
  for (const checkpoint::RowSource* source : snapshot->contents.sparse)
    for (int64_t shard = shards.begin; shard < shards.end; ++shard)
      counts.push_back(source->ShardRows(static_cast<uint32_t>(shard)));
  return counts;
}

// A shard of a snapshot can be visited once, and is then free to change: its rows wait here to be sent.
absl::StatusOr<std::shared_ptr<const HostedSnapshot::Shard>> HostedSnapshot::ShardOf(Snapshot& snapshot, int table,
                                                                                     uint32_t shard) {
  base::MutexLock lock(snapshot.mu);
  for (const auto& kept : snapshot.recent)
    if (kept->table == table && kept->shard == shard) return kept;
  auto& visited = snapshot.visited[static_cast<size_t>(table)];
  if (visited[shard]) return absl::AbortedError(absl::StrCat("shard ", shard, " of the snapshot has been read before"));
  visited[shard] = true;
  const checkpoint::RowSource& source = *snapshot.contents.sparse[static_cast<size_t>(table)];
  auto read = std::make_shared<Shard>();
  read->table = table;
  read->shard = shard;
  read->rows.keys.reserve(source.ShardRows(shard));
  read->rows.rows.reserve(source.ShardRows(shard) * static_cast<size_t>(source.row_width()));
  RETURN_IF_ERROR(source.ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
    read->rows.keys.push_back(key);
    read->rows.rows.insert(read->rows.rows.end(), row.begin(), row.end());
  }));
  snapshot.recent.push_back(read);
  if (snapshot.recent.size() > kRecent) snapshot.recent.pop_front();
  return std::shared_ptr<const Shard>(std::move(read));
}

absl::StatusOr<HostedSnapshot::Rows> HostedSnapshot::ReadRows(uint64_t number, int table, uint32_t shard,
                                                              uint64_t first, uint64_t most) {
  RETURN_IF_ERROR(base::Failpoint("snapshot.read"));
  ASSIGN_OR_RETURN(const auto snapshot, Find(number));
  ASSIGN_OR_RETURN(const auto read, ShardOf(*snapshot, table, shard));
  const Rows& all = read->rows;
  const size_t width = static_cast<size_t>(snapshot->contents.sparse[static_cast<size_t>(table)]->row_width());
  const size_t begin = std::min<size_t>(first, all.keys.size());
  const size_t end = begin + std::min<size_t>(most, all.keys.size() - begin);
  const auto at = [](const auto& values, size_t i) { return values.begin() + static_cast<ptrdiff_t>(i); };
  return Rows{{at(all.keys, begin), at(all.keys, end)}, {at(all.rows, begin * width), at(all.rows, end * width)}};
}

absl::StatusOr<HostedSnapshot::Dense> HostedSnapshot::ReadDense(uint64_t number, uint32_t array) {
  ASSIGN_OR_RETURN(const auto snapshot, Find(number));
  const checkpoint::DenseContents& dense = *snapshot->contents.dense;
  if (array >= dense.arrays.size()) return absl::InvalidArgumentError(absl::StrCat("there is no dense array ", array));
  return Dense{{dense.arrays[array].begin(), dense.arrays[array].end()}, dense.updates};
}

}  // namespace regatta::server
