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
ToyResult Train(base::Mode mode, int servers, const std::vector<uint64_t>& steps, int lanes = 1, int threads = 1) {
  ToyResult result;
  ClusterOptions options;
  options.servers = servers;
  options.workers = static_cast<int>(steps.size());
  options.worker.mode = mode;
  options.worker.threads = threads;
  options.worker.sparse_lanes = lanes;
  options.worker.geo_interval = 3;
  options.worker.tables = ToyTables(mode == base::Mode::kGeo ? "sgd" : "adam");
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
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
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
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
    const ToyResult got = Train(base::Mode::kSync, servers, steps, lanes);
    EXPECT_EQ(got.rows, want.rows) << servers << " servers, " << lanes << " lanes";
    EXPECT_EQ(got.dense, want.dense) << servers << " servers, " << lanes << " lanes";
  }
}

// A loop that owns its schedule, over the wire: the formula of sgd with the rate of every step.
TEST(Sync, TakesTheLearningRatesOfCommits) {
  ToyResult result;
  ClusterOptions options;
  options.servers = 2;
  options.workers = 2;
  options.worker.mode = base::Mode::kSync;
  options.worker.sparse_lanes = 2;
  options.worker.tables = LedgerTables();
  const auto rate_of = [](uint64_t step) { return step == 2 ? std::nullopt : std::optional<float>(0.5f / (1 + step)); };
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    RETURN_IF_ERROR(comm->BeginPass({}));
    for (uint64_t step = 0; step < 5; ++step)
      RETURN_IF_ERROR(RunLedgerStep(*comm, worker.rank(), step, rate_of(step), rate_of(step + 1)));
    RETURN_IF_ERROR(comm->EndPass());
    RETURN_IF_ERROR(worker.Barrier("trained"));
    if (worker.first()) {
      ASSIGN_OR_RETURN(result, ReadToy(worker.model()));
    }
    return worker.Barrier("read");
  });
  double row = 0, dense = 0;
  for (uint64_t step = 0; step < 5; ++step) {
    row += rate_of(step).value_or(1);
    dense += rate_of(step + 1).value_or(1);
  }
  EXPECT_NEAR(result.rows.at(kSharedKey)[0], row, 1e-5);
  EXPECT_NEAR(result.dense[0], dense, 1e-5);
  EXPECT_NEAR(result.dense[2], dense, 1e-5) << "the other server's block";
}

TEST(Sync, WithTwoThreadsAWorkerIsReproducible) {
  const ToyResult once = Train(base::Mode::kSync, 1, {9, 6}, 1, 2), twice = Train(base::Mode::kSync, 2, {9, 6}, 1, 2);
  EXPECT_FALSE(once.rows.empty());
  EXPECT_EQ(once.rows, twice.rows);
  EXPECT_EQ(once.dense, twice.dense);
}

TEST(Async, AppliesEveryPushOnce) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 3;
  options.worker.mode = base::Mode::kAsync;
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
  options.worker.mode = base::Mode::kHalfAsync;
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

// Steps 0 … steps - 1 of worker 0's data, by all of so many workers, none of them more than a step ahead.
ToyResult TrainAlike(int workers, const std::string& rule, uint64_t steps) {
  ToyResult result;
  ClusterOptions options;
  options.servers = 2;
  options.workers = workers;
  options.worker.mode = base::Mode::kGeo;
  options.worker.tables = ToyTables(rule);
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    RETURN_IF_ERROR(comm->BeginPass({}));
    for (uint64_t step = 0; step < steps; ++step) {
      RETURN_IF_ERROR(worker.Barrier("step"));
      RETURN_IF_ERROR(RunToyStep(*comm, 0, step, 0, 0, 0));
    }
    RETURN_IF_ERROR(comm->EndPass());
    RETURN_IF_ERROR(worker.Barrier("trained"));
    if (worker.first()) {
      ASSIGN_OR_RETURN(result, ReadToy(worker.model()));
    }
    return worker.Barrier("read");
  });
  return result;
}

// How far `got` has moved from the initial values in the direction of `want`; 1 = as far as `want`.
double MovedAsFar(const ToyResult& got, const ToyResult& want, const table::ModelConfig& tables) {
  const auto sparse = table::SparseTable::Create(tables.sparse[0]).value();
  const auto dense = table::DenseTable::Create(tables.dense).value();
  double along = 0, length = 0;
  const auto add = [&](float initial, float one, float other) {
    along += static_cast<double>(one - initial) * (other - initial);
    length += static_cast<double>(other - initial) * (other - initial);
  };
  for (const auto& [key, row] : want.rows) {
    const base::GroupedKeys keys({key});
    float initial[kToyDim];
    EXPECT_EQ(sparse->Pull(keys.view(), base::StepKind::kTrain, {initial, kToyDim, kToyDim}), absl::OkStatus());
    for (size_t i = 0; i < kToyDim; ++i) add(initial[i], got.rows.at(key)[i], row[i]);
  }
  for (size_t i = 0; i < want.dense.size(); ++i) add(dense->Values()[i], got.dense[i], want.dense[i]);
  return along / length;
}

TEST(Geo, WorkersWithTheSameDataEndWhereOneProcessEnds) {
  constexpr uint64_t kSteps = 40;  // fewer than the interval
  for (const std::string rule : {"sgd", "adam"}) {
    ToyTrainer alone(rule);
    for (uint64_t step = 0; step < kSteps; ++step) alone.Step({0}, step);
    for (const int workers : {1, 2, 4, 8}) {
      const ToyResult got = TrainAlike(workers, rule, kSteps);
      ASSERT_EQ(got.rows.size(), alone.Result().rows.size());
      EXPECT_NEAR(MovedAsFar(got, alone.Result(), ToyTables(rule)), 1, workers == 1 ? 1e-4 : 0.25)
          << rule << ", " << workers << " workers";
    }
  }
}

TEST(Geo, AChangeIsDividedByTheWorkersThatChangedTheRow) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 4;
  options.worker.mode = base::Mode::kGeo;
  options.worker.geo_interval = 3;
  const ToyResult result = KeepLedger(options, 10);
  ASSERT_EQ(result.rows.size(), 4 * 10 + 1);
  // A row that one worker met keeps its whole change; all workers add 10 to the shared one, which ends at their mean.
  for (const auto& [key, row] : result.rows) EXPECT_NEAR(row[0], key == kSharedKey ? 10.0f : 1.0f, 1e-4) << key;
  EXPECT_NEAR(result.dense[0], 10.0f, 1e-4);
  EXPECT_NEAR(result.dense[1], 55.0f, 1e-4);
}

// The mean is of those that are still there: worker 1 has data for four steps only, and worker 2 for none.
TEST(Geo, WorkersThatHaveNoMoreDataAreNotCounted) {
  ClusterOptions options;
  options.workers = 3;
  options.worker.mode = base::Mode::kGeo;
  options.worker.tables = LedgerTables();
  ToyResult result;
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    const uint64_t steps[] = {10, 4, 0};
    RETURN_IF_ERROR(RunLedgerPass(*comm, worker.rank(), steps[worker.rank()]));
    RETURN_IF_ERROR(worker.Barrier("trained"));
    if (worker.first()) {
      ASSIGN_OR_RETURN(result, ReadToy(worker.model()));
    }
    return worker.Barrier("read");
  });
  // Which part of a batch an exchange in the background takes along is a matter of the moment.
  EXPECT_NEAR(result.rows.at(kSharedKey)[0], 10.0f, 2.5f);
  EXPECT_NEAR(result.dense[0], 10.0f, 2.5f);
}

}  // namespace
}  // namespace regatta::fleet
