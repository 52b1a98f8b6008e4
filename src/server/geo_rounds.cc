#include "server/geo_rounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/gradient.h"

namespace regatta::server {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max() / 2;  // of a mean

}  // namespace

absl::StatusOr<GeoRounds::Span> GeoRounds::SpanOf(const ps::FrameHeader& header) {
  const Span span{header.pass(), header.first_round(), header.last_round()};
  if (span.first == 0 || span.last < span.first || span.last >= wire::kMaxNumber)
    return absl::InvalidArgumentError(
        absl::StrCat("a change of the rounds ", span.first, " to ", span.last, "; rounds are counted from 1"));
  return span;
}

GeoRounds::GeoRounds(int workers, size_t most_bytes)
    : words_((static_cast<size_t>(workers) + 63) / 64),
      most_bytes_(most_bytes),
      reached_(static_cast<size_t>(workers)) {}

absl::Status GeoRounds::Check(int rank, uint64_t pass) const {
  base::MutexLock lock(mu_);
  const Label furthest = *std::max_element(reached_.begin(), reached_.end());
  const uint64_t apart = pass > furthest.pass ? pass - furthest.pass : furthest.pass - pass;
  if (furthest == Label{} || apart <= kMostPassesApart) return absl::OkStatus();  // the first may be of any pass
  return absl::OutOfRangeError(absl::StrCat("worker ", rank, " is in pass ", pass,
                                            ", and the others have come to pass ", furthest.pass, ": at most ",
                                            kMostPassesApart, " may be between them"));
}

// With what a hash table of keys needs.
size_t GeoRounds::RowBytes(size_t width) const { return width * sizeof(float) + words_ * sizeof(uint64_t) + 40; }

absl::Status GeoRounds::Combine(int rank, const Span& span, table::NanPolicy nan_policy, StepPart& part,
                                const Step& log, const Step& apply) {
  base::MutexLock lock(mu_);
  const std::vector<Label> labels = LabelsLocked(span, part);
  if (nan_policy == table::NanPolicy::kAbort) RETURN_IF_ERROR(CheckFiniteLocked(labels, rank, part));
  RETURN_IF_ERROR(log());
  std::vector<Round*> rounds;
  for (const Label& label : labels) rounds.push_back(&open_[label]);
  const auto count = [&](int table, base::Key key, std::span<float> change) {
    mu_.AssertHeld();
    if (!base::AllFinite(change)) {
      if (nan_policy != table::NanPolicy::kClip) return;
      base::CopyFinite(change, change.data());
    }
    if (IsFiniteLocked(labels, rank, table, key, change)) {
      CountLocked(rounds, rank, table, key, change);
    } else {
      std::fill(change.begin(), change.end(), std::numeric_limits<float>::quiet_NaN());  // the table skips it
    }
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

// As many as there is memory for: a request that names many rounds costs a row in each.
std::vector<GeoRounds::Label> GeoRounds::LabelsLocked(const Span& span, const StepPart& part) const {
  if (Label{span.pass, span.last} < oldest_) return {oldest_};
  size_t bytes = part.dense.empty() ? 0 : RowBytes(part.dense.size());
  for (const TablePart& table : part.tables) bytes += table.keys.size() * RowBytes(static_cast<size_t>(table.width));
  const size_t most = std::clamp<size_t>(most_bytes_ / std::max<size_t>(bytes, 1), 1, kMostOpen);
  uint64_t first = span.last - span.first < most ? span.first : span.last - most + 1;
  if (span.pass == oldest_.pass) first = std::max(first, oldest_.round);
  std::vector<Label> labels;
  for (uint64_t round = first; round <= span.last; ++round) labels.push_back({span.pass, round});
  return labels;
}

bool GeoRounds::IsFiniteLocked(std::span<const Label> labels, int rank, int table, base::Key key,
                               std::span<const float> change) const {
  const size_t width = change.size(), word = static_cast<size_t>(rank) / 64;
  const uint64_t bit = uint64_t{1} << (static_cast<size_t>(rank) % 64);
  const auto parts = static_cast<float>(labels.size());
  for (const float value : change)
    if (!(std::abs(value) <= kLargest)) return false;
  for (const Label& label : labels) {
    const auto round = open_.find(label);
    if (round == open_.end()) continue;
    const auto rows = round->second.tables.find(table);
    if (rows == round->second.tables.end()) continue;
    const auto place = rows->second.places.find(key);
    if (place == rows->second.places.end()) continue;
    const uint64_t* const workers = rows->second.workers.data() + place->second * words_;
    const float* const mean = rows->second.means.data() + place->second * width;
    const bool counted = (workers[word] & bit) != 0;
    int count = counted ? 0 : 1;
    for (size_t i = 0; i < words_; ++i) count += std::popcount(workers[i]);
    for (size_t i = 0; i < width; ++i) {
      const float brought = change[i] / parts;
      const float moved = (counted ? brought : brought - mean[i]) / static_cast<float>(count);
      // By less than the largest number: what all rounds move the row by is then finite, too.
      if (!(std::abs(moved) <= kLargest / parts) || !(std::abs(mean[i] + moved) <= kLargest)) return false;
    }
  }
  return true;
}

absl::Status GeoRounds::CheckFiniteLocked(std::span<const Label> labels, int rank, const StepPart& part) const {
  const auto refuse = [&](int table, base::Key key) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the changes that workers bring for ",
        table == kDense ? std::string("the dense parameters") : absl::StrCat("key ", key, " of sparse table ", table),
        " have no finite mean; nothing was applied (nan_policy abort)"));
  };
  for (const TablePart& table : part.tables) {
    const auto width = static_cast<size_t>(table.width);
    for (size_t i = 0; i < table.keys.size(); ++i)
      if (!IsFiniteLocked(labels, rank, table.table, table.keys[i], {table.rows.data() + i * width, width}))
        return refuse(table.table, table.keys[i]);
  }
  if (!part.dense.empty() && !IsFiniteLocked(labels, rank, kDense, 0, part.dense)) return refuse(kDense, 0);
  return absl::OkStatus();
}

void GeoRounds::CountLocked(std::span<Round* const> rounds, int rank, int table, base::Key key,
                            std::span<float> change) {
  const size_t width = change.size(), word = static_cast<size_t>(rank) / 64;
  const uint64_t bit = uint64_t{1} << (static_cast<size_t>(rank) % 64);
  const auto parts = static_cast<float>(rounds.size());
  moved_.assign(width, 0.0f);
  for (Round* const round : rounds) {
    Rows& rows = round->tables[table];
    rows.width = static_cast<int>(width);
    const auto [place, fresh] = rows.places.try_emplace(key, rows.places.size());
    if (fresh) {
      rows.workers.resize(rows.workers.size() + words_);
      rows.means.resize(rows.means.size() + width);
      round->bytes += RowBytes(width);
      bytes_ += RowBytes(width);
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
  while (!open_.empty() && open_.begin()->first < oldest_) CloseOldestLocked();
  while (open_.size() > kMostOpen) CloseOldestLocked();
  if (open_.size() == kMostOpen) oldest_ = std::max(oldest_, open_.begin()->first);
  while (open_.size() > 1 && bytes_ > most_bytes_) {
    CloseOldestLocked();
    oldest_ = std::max(oldest_, open_.begin()->first);
  }
}

void GeoRounds::CloseOldestLocked() {
  bytes_ -= open_.begin()->second.bytes;
  open_.erase(open_.begin());
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
  bytes_ = 0;
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
    for (const auto& [table, rows] : round.tables) {
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
  Rows& to = round.tables[dense ? kDense : static_cast<int>(saved.table())];
  round.bytes += rows * RowBytes(saved.width());
  bytes_ += rows * RowBytes(saved.width());
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
  bytes_ = 0;
  for (const ps::OpenRounds::Round& kept : saved.rounds())
    for (const ps::OpenRounds::Rows& rows : kept.tables())
      RETURN_IF_ERROR(RestoreRowsLocked(rows, open_[FromWire(kept.label())]));
  return absl::OkStatus();
}

}  // namespace regatta::server
