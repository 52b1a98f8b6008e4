#include "server/hosted_cut.h"

#include <glog/logging.h>

#include <algorithm>

#include "base/failpoint.h"

namespace regatta::server {
namespace {

constexpr size_t kRecent = 32;  // shards; a reader that was cut off asks for its last few again

}  // namespace

absl::Status HostedCut::Begin(uint64_t number, const Identity& reader) {
  if (number == 0) return absl::InvalidArgumentError("a cut has a number above 0");
  RETURN_IF_ERROR(base::Failpoint("cut.begin"));
  base::MutexLock lock(mu_);
  asked_ = std::chrono::steady_clock::now();
  if (cut_ != nullptr && cut_->number == number && cut_->incarnation == reader.incarnation) return absl::OkStatus();
  if (!turn_.TryTake())
    return absl::AbortedError(cut_ != nullptr ? "another checkpoint of the job is being read"
                                              : "the server writes a checkpoint of its own");
  auto cut = std::make_shared<Cut>(turn_);
  cut->number = number;
  cut->incarnation = reader.incarnation;
  {
    const GateClosed closed(gate_);
    ASSIGN_OR_RETURN(cut->cut, table::ModelCut::Begin(tables_, {}));
  }
  {
    base::MutexLock visits(cut->mu);
    cut->visited.assign(tables_.sparse.size(), std::vector<bool>(base::kVirtualShards));
  }
  ASSIGN_OR_RETURN(cut->contents, cut->cut->Contents());
  cut_ = std::move(cut);
  reader_ = reader.rank;
  begun_ = true;
  return absl::OkStatus();
}

void HostedCut::End(uint64_t number) {
  base::MutexLock lock(mu_);
  if (cut_ == nullptr || cut_->number != number) return;
  cut_.reset();
  begun_ = false;
}

void HostedCut::Release(const char* why) {
  base::MutexLock lock(mu_);
  if (cut_ == nullptr) return;
  LOG(WARNING) << "gave up cut " << cut_->number << " of the job: " << why;
  cut_.reset();
  begun_ = false;
}

void HostedCut::Look(bool reader_is_here) {
  bool late = false;
  {
    base::MutexLock lock(mu_);
    late = std::chrono::steady_clock::now() - asked_ > kPatience;
  }
  if (!reader_is_here) Release("its reader has left the job");
  if (late) Release("its reader has not asked for a minute");
}

absl::StatusOr<std::shared_ptr<HostedCut::Cut>> HostedCut::Find(uint64_t number) {
  base::MutexLock lock(mu_);
  if (cut_ == nullptr || cut_->number != number)
    return absl::AbortedError(absl::StrCat("there is no cut ", number, " of the job here any more"));
  asked_ = std::chrono::steady_clock::now();
  return cut_;
}

absl::StatusOr<std::vector<uint64_t>> HostedCut::CountRows(uint64_t number, const wire::Range& shards) {
  ASSIGN_OR_RETURN(const auto cut, Find(number));
  std::vector<uint64_t> counts;
  for (const table::RowSource* source : cut->contents.sparse)
    for (int64_t shard = shards.begin; shard < shards.end; ++shard)
      counts.push_back(source->ShardRows(static_cast<uint32_t>(shard)));
  return counts;
}

// A shard of a cut can be visited once, and is then free to change: its rows wait here to be sent.
absl::StatusOr<std::shared_ptr<const HostedCut::Shard>> HostedCut::ShardOf(Cut& cut, int table, uint32_t shard) {
  base::MutexLock lock(cut.mu);
  for (const auto& kept : cut.recent)
    if (kept->table == table && kept->shard == shard) return kept;
  auto& visited = cut.visited[static_cast<size_t>(table)];
  if (visited[shard]) return absl::AbortedError(absl::StrCat("shard ", shard, " of the cut has been read before"));
  visited[shard] = true;
  const table::RowSource& source = *cut.contents.sparse[static_cast<size_t>(table)];
  auto read = std::make_shared<Shard>();
  read->table = table;
  read->shard = shard;
  read->rows.keys.reserve(source.ShardRows(shard));
  read->rows.rows.reserve(source.ShardRows(shard) * static_cast<size_t>(source.row_width()));
  RETURN_IF_ERROR(source.ForEachRow(shard, [&](base::Key key, std::span<const float> row) {
    read->rows.keys.push_back(key);
    read->rows.rows.insert(read->rows.rows.end(), row.begin(), row.end());
  }));
  cut.recent.push_back(read);
  if (cut.recent.size() > kRecent) cut.recent.pop_front();
  return std::shared_ptr<const Shard>(std::move(read));
}

absl::StatusOr<HostedCut::Rows> HostedCut::ReadRows(uint64_t number, int table, uint32_t shard, uint64_t first,
                                                    uint64_t most) {
  RETURN_IF_ERROR(base::Failpoint("cut.read"));
  ASSIGN_OR_RETURN(const auto cut, Find(number));
  ASSIGN_OR_RETURN(const auto read, ShardOf(*cut, table, shard));
  const Rows& all = read->rows;
  const size_t width = static_cast<size_t>(cut->contents.sparse[static_cast<size_t>(table)]->row_width());
  const size_t begin = std::min<size_t>(first, all.keys.size());
  const size_t end = begin + std::min<size_t>(most, all.keys.size() - begin);
  const auto at = [](const auto& values, size_t i) { return values.begin() + static_cast<ptrdiff_t>(i); };
  return Rows{{at(all.keys, begin), at(all.keys, end)}, {at(all.rows, begin * width), at(all.rows, end * width)}};
}

absl::StatusOr<HostedCut::Dense> HostedCut::ReadDense(uint64_t number, uint32_t array) {
  ASSIGN_OR_RETURN(const auto cut, Find(number));
  const table::DenseContents& dense = *cut->contents.dense;
  if (array >= dense.arrays.size()) return absl::InvalidArgumentError(absl::StrCat("there is no dense array ", array));
  return Dense{{dense.arrays[array].begin(), dense.arrays[array].end()}, dense.updates};
}

}  // namespace regatta::server
