#include "server/geo_rounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace regatta::server {
namespace {

// A lane with one table of rows of one float, and what has become of them.
class GeoRoundsTest : public testing::Test {
 protected:
  using Span = GeoRounds::Span;
  void Bring(int rank, const Span& span, base::Key key, float change) {
    Bring(rounds_, rows_, rank, span, key, change);
  }
  static void Bring(GeoRounds& rounds, std::map<base::Key, float>& rows, int rank, const Span& span, base::Key key,
                    float change) {
    StepPart part;
    part.tables.resize(1);
    part.tables[0].width = 1;
    part.tables[0].keys.push_back(key);
    part.tables[0].rows.push_back(change);
    int logged = 0;
    EXPECT_EQ(rounds.Combine(
                  rank, span, table::NanPolicy::kSkip, part,
                  [&] {
                    ++logged;
                    return absl::OkStatus();
                  },
                  [&] {
                    EXPECT_EQ(logged, 1) << "a change is logged before it is applied";
                    if (std::isfinite(part.tables[0].rows[0])) rows[key] += part.tables[0].rows[0];
                    return absl::OkStatus();
                  }),
              absl::OkStatus());
  }
  size_t open() const {
    ps::OpenRounds saved;
    rounds_.Save(saved);
    return static_cast<size_t>(saved.rounds_size());
  }

  static constexpr int kWorkers = 70;  // more than a word of bits
  static constexpr size_t kBytes = 1 << 20;
  GeoRounds rounds_{kWorkers, kBytes};
  std::map<base::Key, float> rows_;
};

TEST_F(GeoRoundsTest, ARowEndsAtTheMeanOfThoseThatChangedIt) {
  for (int rank = 0; rank < kWorkers; ++rank) Bring(rank, {0, 1, 1}, 7, static_cast<float>(rank));
  EXPECT_NEAR(rows_[7], (kWorkers - 1) / 2.0, 1e-4);
}

TEST_F(GeoRoundsTest, ARowThatOneWorkerMetKeepsItsWholeChange) {
  Bring(0, {0, 1, 1}, 7, 0.5f);
  Bring(1, {0, 1, 1}, 8, 0.25f);
  Bring(1, {0, 2, 2}, 7, 0.5f);  // another round
  EXPECT_EQ(rows_[7], 1.0f);
  EXPECT_EQ(rows_[8], 0.25f);
}

TEST_F(GeoRoundsTest, EqualChangesCountOnceAndExactly) {
  for (uint64_t round = 1; round <= 5; ++round)
    for (int rank = 0; rank < 8; ++rank) Bring(rank, {0, round, round}, 7, 0.1f);
  float once = 0;
  for (int round = 0; round < 5; ++round) once += 0.1f;
  EXPECT_EQ(rows_[7], once);
}

// A worker that is ahead, late or sends two rounds as one changes nothing of the sum.
TEST_F(GeoRoundsTest, TheOrderOfRoundsDoesNotMatter) {
  for (uint64_t round = 1; round <= 6; ++round) Bring(0, {0, round, round}, 7, 1);
  Bring(1, {0, 1, 4}, 7, 4);
  Bring(1, {0, 5, 5}, 7, 0.5f);
  Bring(1, {0, 5, 6}, 7, 1.5f);  // the rest of round 5, and round 6
  EXPECT_NEAR(rows_[7], 6, 1e-5);
}

TEST_F(GeoRoundsTest, ARoundIsForgottenWhenAllHaveComeToALaterOne) {
  GeoRounds rounds(2, kBytes);
  std::map<base::Key, float> rows;
  const auto open = [&] {
    ps::OpenRounds saved;
    rounds.Save(saved);
    return saved.rounds_size();
  };
  Bring(rounds, rows, 0, {0, 1, 1}, 7, 1);
  Bring(rounds, rows, 0, {0, 2, 2}, 7, 1);
  EXPECT_EQ(open(), 2);
  Bring(rounds, rows, 1, {0, 2, 2}, 7, 1);
  EXPECT_EQ(open(), 1);
  EXPECT_EQ(rows[7], 2);
  Bring(rounds, rows, 1, {0, 1, 1}, 7, 3);  // counts in round 2, which has its worker already
  EXPECT_EQ(rows[7], 3.5f);
  for (const int rank : {0, 1}) EXPECT_TRUE(rounds.Leave(rank, 0, [] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(open(), 0);
  Bring(rounds, rows, 0, {1, 1, 1}, 7, 1);
  EXPECT_EQ(rows[7], 4.5f);
}

TEST_F(GeoRoundsTest, AWorkerThatDoesNotComeKeepsFewRoundsOpen) {
  for (uint64_t round = 1; round <= 100; ++round) Bring(0, {0, round, round}, 7, 1);
  EXPECT_EQ(open(), GeoRounds::kMostOpen);
  Bring(1, {0, 1, uint64_t{1} << 47}, 7, 1);  // takes no time
  EXPECT_LE(open(), GeoRounds::kMostOpen);
  EXPECT_NEAR(rows_[7], 101, 1);
}

TEST_F(GeoRoundsTest, WhatIsNotANumberIsNotCounted) {
  Bring(0, {0, 1, 1}, 7, std::numeric_limits<float>::quiet_NaN());
  Bring(1, {0, 1, 1}, 7, 1);
  EXPECT_EQ(rows_[7], 1.0f);
}

// 3e38 twice is Inf as a mean: with it every later change would be lost.
TEST_F(GeoRoundsTest, ASumThatIsTooLargeIsNotCounted) {
  Bring(0, {0, 1, 1}, 7, 1.5e38f);
  Bring(0, {0, 1, 1}, 7, 1.5e38f);
  rows_[7] = 0;
  Bring(1, {0, 2, 2}, 7, 1);
  EXPECT_EQ(rows_[7], 1.0f);
}

TEST_F(GeoRoundsTest, ARefusedChangeIsNeitherLoggedNorCounted) {
  const auto bring = [&](int rank, std::vector<std::pair<base::Key, float>> changes) {
    StepPart part;
    part.tables.resize(1);
    part.tables[0].width = 1;
    for (const auto& [key, change] : changes) {
      part.tables[0].keys.push_back(key);
      part.tables[0].rows.push_back(change);
    }
    int logged = 0;
    const absl::Status status = rounds_.Combine(
        rank, {0, 1, 1}, table::NanPolicy::kAbort, part,
        [&] {
          ++logged;
          return absl::OkStatus();
        },
        [&] {
          for (size_t i = 0; i < changes.size(); ++i) rows_[changes[i].first] += part.tables[0].rows[i];
          return absl::OkStatus();
        });
    EXPECT_EQ(logged, status.ok() ? 1 : 0);
    return status;
  };
  ASSERT_TRUE(bring(1, {{8, 1.5e38f}}).ok());
  ps::OpenRounds before, after;
  rounds_.Save(before);
  EXPECT_EQ(bring(0, {{7, 1}, {8, -3.3e38f}}).code(), absl::StatusCode::kFailedPrecondition);
  rounds_.Save(after);
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
  ASSERT_TRUE(bring(1, {{7, 1}}).ok());
  EXPECT_EQ(rows_[7], 1.0f) << "alone in its round";
}

TEST_F(GeoRoundsTest, APassFarFromTheOthersIsRefused) {
  EXPECT_TRUE(rounds_.Check(1, uint64_t{1} << 47).ok()) << "the first may be of any pass";
  Bring(0, {100, 1, 1}, 7, 1);
  for (const uint64_t pass : {uint64_t{36}, uint64_t{100}, uint64_t{164}})
    EXPECT_TRUE(rounds_.Check(1, pass).ok()) << pass;
  for (const uint64_t pass : {uint64_t{0}, uint64_t{35}, uint64_t{165}, uint64_t{1} << 47, ~uint64_t{0}})
    EXPECT_EQ(rounds_.Check(1, pass).code(), absl::StatusCode::kOutOfRange) << pass;
}

TEST_F(GeoRoundsTest, OpenRoundsTakeBoundedMemory) {
  const auto rows = [&] {
    ps::OpenRounds saved;
    rounds_.Save(saved);
    size_t count = 0;
    for (const auto& round : saved.rounds())
      for (const auto& table : round.tables()) count += static_cast<size_t>(table.keys_size());
    return count;
  };
  const auto nothing = [] { return absl::OkStatus(); };
  for (uint64_t round = 1; round < 20; ++round) {
    StepPart part;
    part.tables.resize(1);
    part.tables[0].width = 1;
    for (base::Key key = 0; key < 10'000; ++key) {
      part.tables[0].keys.push_back(round * 10'000 + key);
      part.tables[0].rows.push_back(1);
    }
    ASSERT_TRUE(rounds_.Combine(0, {0, round, round + 15}, table::NanPolicy::kSkip, part, nothing, nothing).ok());
    EXPECT_LE(rows() * (sizeof(base::Key) + sizeof(float) + 2 * sizeof(uint64_t)), kBytes) << round;
  }
  EXPECT_GE(rows(), 10'000u) << "the present round is kept";
}

TEST_F(GeoRoundsTest, AServerThatComesBackCountsOn) {
  std::map<base::Key, float> rows;
  Bring(rounds_, rows, 0, {0, 1, 3}, 7, 3);
  Bring(rounds_, rows, 1, {0, 2, 2}, 8, 1);
  Bring(rounds_, rows, 65, {0, 2, 2}, 7, 5);
  ps::OpenRounds saved;
  rounds_.Save(saved);
  GeoRounds back(kWorkers, kBytes);
  ASSERT_EQ(back.Restore(saved), absl::OkStatus());
  std::map<base::Key, float> rows_back = rows;
  for (const auto& [rounds, to] : {std::pair{&rounds_, &rows}, {&back, &rows_back}}) {
    Bring(*rounds, *to, 2, {0, 1, 2}, 7, 0.3f);
    Bring(*rounds, *to, 65, {0, 2, 2}, 7, 0.7f);
    Bring(*rounds, *to, 2, {0, 2, 2}, 8, 0.9f);
  }
  EXPECT_EQ(rows_back, rows);
  EXPECT_NEAR(rows[8], 0.95, 1e-6);
  ps::OpenRounds damaged = saved;
  damaged.mutable_rounds(0)->mutable_tables(0)->add_means(1);
  EXPECT_EQ(GeoRounds(kWorkers, kBytes).Restore(damaged).code(), absl::StatusCode::kDataLoss);
}

TEST_F(GeoRoundsTest, RequestsWithoutRoundsAreRefused) {
  for (const auto& [first, last] : {std::pair<uint64_t, uint64_t>{0, 0}, {0, 3}, {3, 2}, {1, uint64_t{1} << 48}}) {
    ps::FrameHeader header;
    header.set_first_round(first);
    header.set_last_round(last);
    EXPECT_EQ(GeoRounds::SpanOf(header).status().code(), absl::StatusCode::kInvalidArgument) << first << " " << last;
  }
}

}  // namespace
}  // namespace regatta::server
