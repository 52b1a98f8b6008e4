// Whole jobs in one process: servers and workers talk gRPC over loopback, a worker is a thread.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "base/hash.h"
#include "base/random.h"
#include "fleet/testing/run_cluster.h"
#include "fleet/testing/toy_model.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::fleet {
namespace {

// Rows and dense parameters after a job in which every worker trains `steps[rank]` steps of the toy model.
ToyResult Train(Mode mode, int servers, const std::vector<uint64_t>& steps, int lanes = 1, int threads = 1) {
  ToyResult result;
  ClusterOptions options;
  options.servers = servers;
  options.workers = static_cast<int>(steps.size());
  options.worker.mode = mode;
  options.worker.threads = threads;
  options.worker.sparse_lanes = lanes;
  options.worker.geo_interval = 3;
  options.worker.tables = ToyTables(mode == Mode::kGeo ? "sgd" : "adam");
  RunCluster(options, [&](Worker& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    RETURN_IF_ERROR(RunToyPass(*comm, worker.rank(), 0, 0, steps[static_cast<size_t>(worker.rank())], threads));
    RETURN_IF_ERROR(worker.Barrier("trained"));
    if (worker.first()) {
      ASSIGN_OR_RETURN(result, ReadToy(worker.model()));
    }
    return worker.Barrier("read");
  });
  return result;
}

// One process that accumulates the same micro-batches in the order of ranks.
ToyResult Accumulate(const std::vector<uint64_t>& steps) {
  ToyTrainer alone("adam");
  uint64_t most = 0;
  for (uint64_t n : steps) most = std::max(most, n);
  for (uint64_t step = 0; step < most; ++step) {
    std::vector<int> ranks;
    for (size_t rank = 0; rank < steps.size(); ++rank)
      if (step < steps[rank]) ranks.push_back(static_cast<int>(rank));
    alone.Step(ranks, step);
  }
  return alone.Result();
}

// What the ledger holds after every worker has made so many steps.
ToyResult KeepLedger(ClusterOptions options, uint64_t steps) {
  ToyResult result;
  options.worker.tables = LedgerTables();
  RunCluster(options, [&](Worker& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    RETURN_IF_ERROR(RunLedgerPass(*comm, worker.rank(), steps));
    RETURN_IF_ERROR(worker.Barrier("trained"));
    if (worker.first()) {
      ASSIGN_OR_RETURN(result, ReadToy(worker.model()));
    }
    return worker.Barrier("read");
  });
  return result;
}

TEST(Sync, EqualsOneProcessForAnyNumberOfServersAndLanes) {
  const std::vector<uint64_t> steps{12, 7, 12};  // worker 1 leaves early, the others go on
  const ToyResult want = Accumulate(steps);
  ASSERT_FALSE(want.rows.empty());
  for (const auto& [servers, lanes] : {std::pair{1, 1}, {2, 1}, {3, 2}}) {
    const ToyResult got = Train(Mode::kSync, servers, steps, lanes);
    EXPECT_EQ(got.rows, want.rows) << servers << " servers, " << lanes << " lanes";
    EXPECT_EQ(got.dense, want.dense) << servers << " servers, " << lanes << " lanes";
  }
}

TEST(Sync, WithTwoThreadsAWorkerIsReproducible) {
  const ToyResult once = Train(Mode::kSync, 1, {9, 6}, 1, 2), twice = Train(Mode::kSync, 2, {9, 6}, 1, 2);
  EXPECT_FALSE(once.rows.empty());
  EXPECT_EQ(once.rows, twice.rows);
  EXPECT_EQ(once.dense, twice.dense);
}

TEST(Async, AppliesEveryPushOnce) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 3;
  options.worker.mode = Mode::kAsync;
  constexpr uint64_t kPushes = 40;
  for (const uint64_t staleness : {4, 0}) {
    SCOPED_TRACE(staleness);
    options.worker.staleness = staleness;
    const ToyResult result = KeepLedger(options, kPushes);
    // A row a push, and one row that all pushes share: gradient 1, learning rate -1.
    ASSERT_EQ(result.rows.size(), 3 * kPushes + 1);
    for (const auto& [key, row] : result.rows) EXPECT_EQ(row[0], key == kSharedKey ? 3.0f * kPushes : 1.0f) << key;
    // Dense gradients go by fours where pushes may be stale, else one by one; an exchange adds their mean.
    const float merged = staleness == 0 ? 1 : 4;
    EXPECT_EQ(result.dense[0], 3 * kPushes / merged);
    EXPECT_EQ(result.dense[1], 3 * (kPushes * (kPushes + 1) / 2) / merged);
  }
}

TEST(HalfAsync, AppliesEveryGroupOnce) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 2;
  options.worker.mode = Mode::kHalfAsync;
  options.worker.half_async_merge = 4;
  options.worker.staleness = 1;  // every group's dense gradients go alone
  const ToyResult result = KeepLedger(options, 10);
  // The rule divides a group's sum by its samples: 4 and 4 and 2 batches of one sample each come to 1 for the shared
  // key.
  ASSERT_EQ(result.rows.size(), 2 * 10 + 1);
  EXPECT_NEAR(result.rows.at(kSharedKey)[0], 2 * 3, 1e-5);
  double sum = 0;
  for (const auto& [key, row] : result.rows) sum += key == kSharedKey ? 0 : row[0];
  EXPECT_NEAR(sum, 2 * 3, 1e-5);
  EXPECT_NEAR(result.dense[0], 2 * 3, 1e-5);
  EXPECT_NEAR(result.dense[1], 2 * (2.5 + 6.5 + 9.5), 1e-5);  // the means of steps 1 to 4, 5 to 8, 9 and 10
}

TEST(Geo, LeavesTheServersWithTheSumOfEveryWorkersChanges) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 2;
  options.worker.mode = Mode::kGeo;
  options.worker.geo_interval = 3;
  const ToyResult result = KeepLedger(options, 10);
  ASSERT_EQ(result.rows.size(), 2 * 10 + 1);
  for (const auto& [key, row] : result.rows) EXPECT_NEAR(row[0], key == kSharedKey ? 20.0f : 1.0f, 1e-4) << key;
  EXPECT_NEAR(result.dense[0], 20.0f, 1e-4);
  EXPECT_NEAR(result.dense[1], 2 * 55.0f, 1e-4);
}

}  // namespace
}  // namespace regatta::fleet
