#include "comm/geo.h"

#include <gtest/gtest.h>

#include "comm/testing/in_process_job.h"
#include "comm/testing/small_step.h"

namespace regatta::comm {
namespace {

constexpr base::Key kGeoRow = 1;

std::unique_ptr<Geo> NewGeo(InProcessJob& job, int rank, int workers, uint64_t interval = 400) {
  return Geo::Create(job.client(rank), SmallTables(), {.threads = 1, .workers = workers, .interval = interval}).value();
}

// Worker r of `kGeoWorkers` trains round t on the shared row if r <= t, and always on a row of its own.
constexpr int kGeoWorkers = 3;
float GeoChange(int rank, uint64_t round) { return static_cast<float>((rank + 1) * 10) + static_cast<float>(round); }
bool GeoShares(int rank, uint64_t round) { return static_cast<uint64_t>(rank) <= round; }
SmallStep GeoStepOf(int rank, uint64_t round) {
  const float grad = -GeoChange(rank, round);
  SmallStep step{.grads = {{10 + static_cast<base::Key>(rank), grad}}, .dense = {grad, -grad}};
  if (GeoShares(rank, round)) step.grads[kGeoRow] = grad;
  return step;
}

// The first ten rounds of a pass are a batch each (geo_schedule.h), and every one is flushed by itself. So a row moves
// by the sum over rounds of the mean over the workers that changed it in the round.
TEST(Geo, ARowMovesByTheMeanOverTheWorkersThatChangedItSummedOverRounds) {
  constexpr uint64_t kRounds = 8;
  InProcessJob job(base::Mode::kGeo, kGeoWorkers, SmallTables());
  const absl::Status status = InThreads(kGeoWorkers, [&](int rank) -> absl::Status {
    const auto geo = NewGeo(job, rank, kGeoWorkers);
    RETURN_IF_ERROR(geo->BeginPass(SmallPass()));
    for (uint64_t round = 0; round < kRounds; ++round) {
      RETURN_IF_ERROR(RunStep(*geo, GeoStepOf(rank, round), round));
      RETURN_IF_ERROR(geo->Flush());
    }
    return geo->EndPass();
  });
  ASSERT_TRUE(status.ok()) << status;
  double shared = 0, dense = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    double sum = 0, all = 0, count = 0;
    for (int rank = 0; rank < kGeoWorkers; ++rank) {
      all += GeoChange(rank, round) / kGeoWorkers;
      if (!GeoShares(rank, round)) continue;
      sum += GeoChange(rank, round);
      count += 1;
    }
    shared += sum / count;
    dense += all;
  }
  const std::map<base::Key, float> rows = job.rows();
  EXPECT_NEAR(rows.at(kGeoRow), shared, 1e-3);
  for (int rank = 0; rank < kGeoWorkers; ++rank) {
    double own = 0;  // a row that one worker met keeps its whole change
    for (uint64_t round = 0; round < kRounds; ++round) own += GeoChange(rank, round);
    EXPECT_NEAR(rows.at(10 + static_cast<base::Key>(rank)), own, 1e-3);
  }
  EXPECT_NEAR(job.dense()[0], dense, 1e-3);
  EXPECT_NEAR(job.dense()[1], -dense, 1e-3);
}

TEST(Geo, AReplicaIsTheServersValueAndWhatIsPending) {
  InProcessJob job(base::Mode::kGeo, 2, SmallTables());
  const auto first = NewGeo(job, 0, 2), second = NewGeo(job, 1, 2);
  ASSERT_TRUE(first->BeginPass(SmallPass()).ok());
  ASSERT_TRUE(second->BeginPass(SmallPass()).ok());
  const SmallStep ten{.grads = {{kGeoRow, -10}}, .dense = {-10, 0}}, two{.grads = {{kGeoRow, -2}}, .dense = {-2, 0}};
  std::map<base::Key, float> pulled;
  ASSERT_TRUE(RunStep(*first, ten, 0).ok());
  ASSERT_TRUE(first->Flush().ok());
  ASSERT_TRUE(RunStep(*second, two, 0, 0, 0, &pulled).ok());
  EXPECT_EQ(pulled.at(kGeoRow), 10);  // first met when the servers had it
  ASSERT_TRUE(second->Flush().ok());
  EXPECT_EQ(job.rows().at(kGeoRow), 6);  // the mean of 10 and 2
  EXPECT_EQ(job.dense()[0], 6);
  ASSERT_TRUE(RunStep(*second, two, 1, 0, 0, &pulled).ok());
  EXPECT_EQ(pulled.at(kGeoRow), 6);  // taken over by the exchange
  ASSERT_TRUE(RunStep(*first, ten, 1, 0, 0, &pulled).ok());
  EXPECT_EQ(pulled.at(kGeoRow), 10);  // its own, until it exchanges
}

TEST(Geo, LeavingAPassSendsWhatIsPending) {
  InProcessJob job(base::Mode::kGeo, 1, SmallTables());
  const auto geo = NewGeo(job, 0, 1);
  ASSERT_TRUE(geo->BeginPass(SmallPass()).ok());
  for (uint64_t batch = 0; batch < 30; ++batch)
    ASSERT_TRUE(RunStep(*geo, {.grads = {{kGeoRow, -1}}, .dense = {-1, -2}}, batch).ok());
  ASSERT_TRUE(geo->EndPass().ok());
  EXPECT_NEAR(job.rows().at(kGeoRow), 30, 1e-4);
  EXPECT_NEAR(job.dense()[0], 30, 1e-4);
  EXPECT_NEAR(job.dense()[1], 60, 1e-4);
}

TEST(Geo, ExchangesSpeakOfEveryRoundOnce) {
  InProcessJob job(base::Mode::kGeo, 1, SmallTables());
  const auto geo = NewGeo(job, 0, 1);
  ASSERT_TRUE(geo->BeginPass(SmallPass()).ok());
  for (uint64_t batch = 0; batch < 94; ++batch)  // 30 rounds
    ASSERT_TRUE(RunStep(*geo, {.grads = {{kGeoRow, -1}}, .dense = {-1, 0}}, batch).ok());
  ASSERT_TRUE(geo->EndPass().ok());
  uint64_t last = 0;
  for (const InProcessJob::Pushed& change : job.dense_pushes()) {
    EXPECT_TRUE(change.rounds.first == last + 1 || change.rounds.first == last) << change.rounds.first;
    EXPECT_GE(change.rounds.last, change.rounds.first);
    last = change.rounds.last;
  }
  EXPECT_EQ(last, 30u);
}

TEST(Geo, AWorkerThatComesBackGoesOnInItsRound) {
  InProcessJob job(base::Mode::kGeo, 1, SmallTables());
  const auto geo = NewGeo(job, 0, 1);
  ASSERT_TRUE(geo->BeginPass(SmallPass(0, 94)).ok());
  ASSERT_TRUE(RunStep(*geo, {.grads = {{kGeoRow, -1}}, .dense = {-1, 0}}, 94).ok());
  ASSERT_TRUE(geo->EndPass().ok());
  ASSERT_EQ(job.dense_pushes().size(), 1u);
  EXPECT_EQ(job.dense_pushes()[0].rounds.last, 31u);
}

TEST(Geo, AnErrorOfTheServersSurfacesInEndPass) {
  InProcessJob job(base::Mode::kGeo, 1, SmallTables());
  const auto geo = NewGeo(job, 0, 1);
  ASSERT_TRUE(geo->BeginPass(SmallPass()).ok());
  ASSERT_TRUE(RunStep(*geo, {.grads = {{kGeoRow, -1}}, .dense = {-1, 0}}, 0).ok());
  ASSERT_TRUE(geo->Flush().ok());
  job.Break(absl::UnavailableError("server 0 is gone"));
  RunStep(*geo, {.grads = {{kGeoRow, -1}}, .dense = {-1, 0}}, 1).IgnoreError();
  EXPECT_EQ(geo->EndPass().message(), "server 0 is gone");
}

}  // namespace
}  // namespace regatta::comm
