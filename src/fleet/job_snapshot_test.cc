// A snapshot of all servers, read while the workers train on.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fleet/testing/run_cluster.h"
#include "fleet/testing/toy_model.h"

namespace regatta::fleet {
namespace {

constexpr uint64_t kBefore = 6, kAfter = 30;

ToyResult Accumulate(uint64_t steps) {
  ToyTrainer alone("adam");
  for (uint64_t step = 0; step < steps; ++step) alone.Step({0, 1}, step);
  return alone.Result();
}

// Two workers train kBefore steps, take a snapshot, and train kAfter more while it is read.
struct Read {
  ToyResult snapshot, end;
};
Read TrainAndTakeSnapshot(base::Mode mode, int servers) {
  Read read;
  ClusterOptions options;
  options.servers = servers;
  options.workers = 2;
  options.worker.mode = mode;
  options.worker.sparse_lanes = 2;
  options.worker.half_async_merge = 3;
  options.worker.tables = ToyTables(mode == base::Mode::kGeo ? "sgd" : "adam");
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
    ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
    RETURN_IF_ERROR(comm->BeginPass({}));
    const auto train = [&](uint64_t begin, uint64_t end) -> absl::Status {
      for (uint64_t step = begin; step < end; ++step) RETURN_IF_ERROR(RunToyStep(*comm, worker.rank(), step, 0, 0, 0));
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(train(0, kBefore));
    RETURN_IF_ERROR(comm->Flush());
    RETURN_IF_ERROR(worker.Barrier("flushed"));
    std::unique_ptr<client::RemoteSnapshot> snapshot;
    if (worker.first()) {
      ASSIGN_OR_RETURN(snapshot, worker.BeginSnapshot(1));
      if (mode != base::Mode::kSync) {
        ASSIGN_OR_RETURN(read.end, ReadToy(worker.model()));  // nobody trains: the tables as they are in the snapshot
      }
    }
    RETURN_IF_ERROR(worker.Barrier("begun"));
    absl::Status status;
    std::thread reader;
    if (worker.first())
      reader = std::thread([&] {
        auto toy = ReadToy(snapshot->model());
        status = toy.status();
        if (toy.ok()) read.snapshot = *std::move(toy);
      });
    const absl::Status trained = train(kBefore, kBefore + kAfter);
    if (reader.joinable()) reader.join();
    RETURN_IF_ERROR(trained);
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(comm->EndPass());
    RETURN_IF_ERROR(worker.Barrier("trained"));
    if (worker.first() && mode == base::Mode::kSync) {
      ASSIGN_OR_RETURN(read.end, ReadToy(worker.model()));
    }
    return worker.Barrier("read");
  });
  return read;
}

TEST(JobSnapshot, OfSyncIsTheModelOfItsStepAndTrainingGoesOnAsIfItHadNotBeen) {
  const ToyResult want = Accumulate(kBefore), end = Accumulate(kBefore + kAfter);
  for (const int servers : {1, 3}) {
    const Read got = TrainAndTakeSnapshot(base::Mode::kSync, servers);
    EXPECT_EQ(got.snapshot.rows, want.rows) << servers;
    EXPECT_EQ(got.snapshot.dense, want.dense) << servers;
    EXPECT_EQ(got.end.rows, end.rows) << servers;
    EXPECT_EQ(got.end.dense, end.dense) << servers;
  }
}

TEST(JobSnapshot, OfEveryModeIsTheTablesOfItsMoment) {
  for (const base::Mode mode : {base::Mode::kAsync, base::Mode::kHalfAsync, base::Mode::kGeo}) {
    const Read got = TrainAndTakeSnapshot(mode, 2);
    ASSERT_FALSE(got.end.rows.empty());
    EXPECT_EQ(got.snapshot.rows, got.end.rows) << Name(mode);
    EXPECT_EQ(got.snapshot.dense, got.end.dense) << Name(mode);
  }
}

TEST(JobSnapshot, ASecondOneIsRefusedUntilTheFirstHasEnded) {
  ClusterOptions options;
  options.servers = 2;
  options.worker.tables = ToyTables("adam");
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
    ASSIGN_OR_RETURN(auto first, worker.BeginSnapshot(1));
    const auto second = worker.BeginSnapshot(2);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kAborted) << second.status();
    EXPECT_TRUE(ReadToy(first->model()).ok()) << "the refused one took nothing away";
    first.reset();
    EXPECT_TRUE(worker.BeginSnapshot(3).ok());
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace regatta::fleet
