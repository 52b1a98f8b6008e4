#include "server/geo_rounds.h"

#include <algorithm>
#include <bit>

#include "base/gradient.h"

namespace regatta::server {

absl::StatusOr<GeoRounds::Span> GeoRounds::SpanOf(const ps::FrameHeader& header) {
  const Span span{header.pass(), header.first_round(), header.last_round()};
  if (span.first == 0 || span.last < span.first || span.last >= wire::kMaxNumber)
    return absl::InvalidArgumentError(
        absl::StrCat("a change of the rounds ", span.first, " to ", span.last, "; rounds are counted from 1"));
  return span;
}

GeoRounds::GeoRounds(int workers)
    : words_((static_cast<size_t>(workers) + 63) / 64), reached_(static_cast<size_t>(workers)) {}

absl::Status GeoRounds::Combine(int rank, const Span& span, table::NanPolicy nan_policy, StepPart& part,
                                const Step& log, const Step& apply) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(log());
  const std::vector<Round*> rounds = OpenLocked(span);
  const auto count = [&](int table, base::Key key, std::span<float> change) {
    mu_.AssertHeld();
    if (!base::AllFinite(change)) {
      if (nan_policy != table::NanPolicy::kClip) return;
      base::CopyFinite(change, change.data());
    }
    CountLocked(rounds, rank, table, key, change);
  };
  for (TablePart& table : part.tables) {
    const auto width = static_cast<size_t>(table.width);
    for (size_t i = 0; i < table.keys.size(); ++i)
      count(table.table, table.keys[i], {table.rows.data() + i * width, width});
  }
  if (!part.dense.empty()) count(kDense, 0, part.dense);
  ReachLocked(rank, {span.pass, span.last});
  return apply();
}

std::vector<GeoRounds::Round*> GeoRounds::OpenLocked(const Span& span) {
  std::vector<Round*> rounds;
  uint64_t first = span.last - span.first < kMostOpen ? span.first : span.last - kMostOpen + 1;
  if (span.pass == oldest_.pass) first = std::max(first, oldest_.round);
  if (Label{span.pass, span.last} < oldest_) return {&open_[oldest_]};
  for (uint64_t round = first; round <= span.last; ++round) rounds.push_back(&open_[{span.pass, round}]);
  return rounds;
}

void GeoRounds::CountLocked(std::span<Round* const> rounds, int rank, int table, base::Key key,
                            std::span<float> change) {
  const size_t width = change.size(), word = static_cast<size_t>(rank) / 64;
  const uint64_t bit = uint64_t{1} << (static_cast<size_t>(rank) % 64);
  const auto parts = static_cast<float>(rounds.size());
  moved_.assign(width, 0.0f);
  for (Round* const round : rounds) {
    Rows& rows = (*round)[table];
    rows.width = static_cast<int>(width);
    const auto [place, fresh] = rows.places.try_emplace(key, rows.places.size());
    if (fresh) {
      rows.workers.resize(rows.workers.size() + words_);
      rows.means.resize(rows.means.size() + width);
    }
    uint64_t* const workers = rows.workers.data() + place->second * words_;
    float* const mean = rows.means.data() + place->second * width;
    const bool counted = (workers[word] & bit) != 0;
    workers[word] |= bit;
    int count = 0;
    for (size_t i = 0; i < words_; ++i) count += std::popcount(workers[i]);
    for (size_t i = 0; i < width; ++i) {
      const float brought = change[i] / parts;
      const float moved = (counted ? brought : brought - mean[i]) / static_cast<float>(count);
      mean[i] += moved;
      moved_[i] += moved;
    }
  }
  std::copy(moved_.begin(), moved_.end(), change.begin());
}

void GeoRounds::ReachLocked(int rank, const Label& label) {
  Label& reached = reached_[static_cast<size_t>(rank)];
  reached = std::max(reached, label);
  oldest_ = std::max(oldest_, *std::min_element(reached_.begin(), reached_.end()));
  open_.erase(open_.begin(), open_.lower_bound(oldest_));
  while (open_.size() > kMostOpen) open_.erase(open_.begin());
  if (open_.size() == kMostOpen) oldest_ = std::max(oldest_, open_.begin()->first);
}

absl::Status GeoRounds::Leave(int rank, uint64_t pass, const Step& log) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(log());
  ReachLocked(rank, {pass + 1, 0});
  return absl::OkStatus();
}

void GeoRounds::Clear() {
  base::MutexLock lock(mu_);
  open_.clear();
}

void GeoRounds::ToWire(const Label& label, ps::OpenRounds::Label& out) {
  out.set_pass(label.pass);
  out.set_round(label.round);
}

// Keys go out in the order of their places, so that a server that comes back finds each where it was.
void GeoRounds::Save(ps::OpenRounds& out) const {
  base::MutexLock lock(mu_);
  ToWire(oldest_, *out.mutable_oldest());
  for (const Label& label : reached_) ToWire(label, *out.add_reached());
  for (const auto& [label, round] : open_) {
    ps::OpenRounds::Round& kept = *out.add_rounds();
    ToWire(label, *kept.mutable_label());
    for (const auto& [table, rows] : round) {
      ps::OpenRounds::Rows& to = *kept.add_tables();
      to.set_table(static_cast<uint32_t>(std::max(table, 0)));
      to.set_width(static_cast<uint32_t>(rows.width));
      if (table != kDense) {
        to.mutable_keys()->Resize(static_cast<int>(rows.places.size()), 0);
        for (const auto& [key, place] : rows.places) to.set_keys(static_cast<int>(place), key);
      }
      to.mutable_workers()->Add(rows.workers.begin(), rows.workers.end());
      to.mutable_means()->Add(rows.means.begin(), rows.means.end());
    }
  }
}

absl::Status GeoRounds::RestoreRowsLocked(const ps::OpenRounds::Rows& saved, Round& round) {
  const bool dense = saved.keys().empty();
  const size_t rows = dense ? 1 : static_cast<size_t>(saved.keys_size());
  if (static_cast<size_t>(saved.workers_size()) != rows * words_ ||
      static_cast<size_t>(saved.means_size()) != rows * saved.width())
    return absl::DataLossError("the open rounds of geo in the checkpoint are not whole");
  Rows& to = round[dense ? kDense : static_cast<int>(saved.table())];
  to.width = static_cast<int>(saved.width());
  to.places.reserve(rows);
  for (size_t i = 0; i < rows; ++i) to.places.emplace(dense ? 0 : saved.keys(static_cast<int>(i)), i);
  to.workers.assign(saved.workers().begin(), saved.workers().end());
  to.means.assign(saved.means().begin(), saved.means().end());
  return absl::OkStatus();
}

absl::Status GeoRounds::Restore(const ps::OpenRounds& saved) {
  base::MutexLock lock(mu_);
  oldest_ = FromWire(saved.oldest());
  for (size_t rank = 0; rank < reached_.size() && rank < static_cast<size_t>(saved.reached_size()); ++rank)
    reached_[rank] = FromWire(saved.reached(static_cast<int>(rank)));
  open_.clear();
  for (const ps::OpenRounds::Round& kept : saved.rounds())
    for (const ps::OpenRounds::Rows& rows : kept.tables())
      RETURN_IF_ERROR(RestoreRowsLocked(rows, open_[FromWire(kept.label())]));
  return absl::OkStatus();
}

}  // namespace regatta::server
