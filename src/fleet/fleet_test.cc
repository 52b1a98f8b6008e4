#include "fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/testing/test_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "cluster/environment.h"
#include "fleet/testing/run_fleet.h"
#include "fleet/testing/toy_model.h"

namespace regatta::fleet {
namespace {

using base::TestFolder;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSteps = 9;

WorkerOptions SyncToy(const std::string& rule = "adagrad") {
  WorkerOptions options;
  options.mode = base::Mode::kSync;
  options.tables = ToyTables(rule);
  options.wait_timeout = std::chrono::seconds(20);
  return options;
}

absl::Status Joined(Fleet& fleet) { return fleet.InitWorker(SyncToy()); }

// Passes of the toy model, and what the tables hold afterwards.
absl::StatusOr<ToyResult> Train(Fleet& fleet, int passes) {
  ASSIGN_OR_RETURN(comm::Communicator* const comm, fleet.StartCommunicator());
  for (int pass = 0; pass < passes; ++pass)
    RETURN_IF_ERROR(RunToyPass(*comm, fleet.worker_index(), static_cast<uint64_t>(pass),
                               static_cast<uint64_t>(pass) * kSteps, kSteps, 1));
  RETURN_IF_ERROR(fleet.BarrierWorker());
  ToyResult result;
  if (fleet.is_first_worker()) {
    ASSIGN_OR_RETURN(result, ReadToy(fleet.model()));
  }
  RETURN_IF_ERROR(fleet.BarrierWorker());
  return result;
}

// A job that trains so many passes and saves to `dir`, unless that is ""; what the first worker read.
ToyResult RunJob(const FleetJob& job, int passes, const std::string& dir, const std::string& load = "") {
  ToyResult result;
  const auto ends = RunFleet(job, [&](Fleet& fleet) -> absl::Status {
    RETURN_IF_ERROR(Joined(fleet));
    if (!load.empty()) RETURN_IF_ERROR(fleet.LoadModel(load));
    ASSIGN_OR_RETURN(ToyResult mine, Train(fleet, passes));
    if (fleet.is_first_worker()) result = std::move(mine);
    return dir.empty() ? absl::OkStatus() : fleet.SavePersistables(dir, {.step = 7});
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
  return result;
}

std::unique_ptr<Fleet> Alone() {
  auto fleet = Fleet::Init(cluster::ClusterSpec{});
  EXPECT_TRUE(fleet.ok()) << fleet.status();
  return *std::move(fleet);
}

// As the process of a server that is killed and started again.
TEST(Fleet, AServerStartedAgainOnItsDataDirGoesOnWithTheJob) {
  const TestFolder folder;
  const std::vector<std::string> endpoints = {FreeEndpoint(0)};
  const auto serve = [&] {
    auto fleet = MakeFleet(cluster::Role::kServer, 0, 1, endpoints);
    EXPECT_EQ(fleet->InitServer("", folder / "data"), absl::OkStatus());
    return fleet;
  };
  ToyResult got;
  {
    auto server = serve();
    std::thread serving([&] { EXPECT_EQ(server->RunServer().code(), absl::StatusCode::kCancelled); });
    const auto worker = MakeFleet(cluster::Role::kWorker, 0, 1, endpoints);
    ASSERT_EQ(Joined(*worker), absl::OkStatus());
    comm::Communicator* const comm = worker->StartCommunicator().value();
    ASSERT_EQ(RunToyPass(*comm, 0, 0, 0, kSteps, 1), absl::OkStatus());
    server->StopServer();
    serving.join();
    server.reset();
    server = serve();
    serving = std::thread([&] { EXPECT_EQ(server->RunServer(), absl::OkStatus()); });
    ASSERT_EQ(RunToyPass(*comm, 0, 1, kSteps, kSteps, 1), absl::OkStatus());
    got = ReadToy(worker->model()).value();
    worker->StopWorker();
    serving.join();
  }
  const ToyResult want = RunJob({.servers = 1, .workers = 1}, 2, "");
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.dense, want.dense);
}

// Twelve sums, a barrier and a save, as a process of either life makes them. Only a first life's numbers count.
absl::Status CollectiveCalls(Fleet& fleet, int more, const std::string& dir) {
  WorkerOptions options = SyncToy();
  options.on_loss = base::LossPolicy::kAwait;
  RETURN_IF_ERROR(fleet.InitWorker(options));
  for (int i = 0; i < 12; ++i) {
    ASSIGN_OR_RETURN(const int64_t sum, fleet.AllReduceWorker(fleet.worker_index() * 10 + i + more, Reduce::kSum));
    if (sum != 10 + 2 * i) return absl::InternalError(absl::StrCat("the sum ", i, " is ", sum));
  }
  RETURN_IF_ERROR(fleet.BarrierWorker());
  return fleet.SavePersistables(dir);
}

TEST(Fleet, AWorkerThatIsReplacedGetsTheAnswersOfTheCallsThatAreOver) {
  for (const int replaced : {0, 1}) {
    const TestFolder folder;
    const auto life = [&](Fleet& fleet) -> absl::Status {
      RETURN_IF_ERROR(CollectiveCalls(fleet, 0, folder / "save"));
      if (fleet.worker_index() != replaced) return fleet.BarrierWorker();
      fleet.StopWorker(absl::CancelledError("as if it were killed"));
      const auto next = MakeFleet(cluster::Role::kWorker, replaced, 2, fleet.server_endpoints());
      RETURN_IF_ERROR(CollectiveCalls(*next, 1000, folder / "again"));
      RETURN_IF_ERROR(next->BarrierWorker());
      next->StopWorker();
      return absl::OkStatus();
    };
    EXPECT_THAT(RunFleet({.workers = 2, .data_dir = folder / "data"}, life), Each(absl::OkStatus()));
    EXPECT_TRUE(std::filesystem::exists(folder / "save"));
    EXPECT_FALSE(std::filesystem::exists(folder / "again")) << "a save that is over is not written again";
  }
}

TEST(Fleet, AloneIsAWorkerAndTheFirst) {
  const auto fleet = Alone();
  EXPECT_TRUE(fleet->alone());
  EXPECT_TRUE(fleet->is_worker());
  EXPECT_TRUE(fleet->is_first_worker());
  EXPECT_FALSE(fleet->is_server());
  EXPECT_EQ(fleet->worker_index(), 0);
  EXPECT_EQ(fleet->worker_num(), 1);
  EXPECT_EQ(fleet->server_num(), 0);
  EXPECT_EQ(fleet->InitServer().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(fleet->RunServer().message(), HasSubstr("is_server()"));
}

TEST(Fleet, TheRoleIsWhatTheProgramSays) {
  const std::vector<std::string> endpoints = {"127.0.0.1:7001", "127.0.0.1:7002"};
  const auto server = MakeFleet(cluster::Role::kServer, 1, 3, endpoints);
  EXPECT_TRUE(server->is_server());
  EXPECT_FALSE(server->is_worker());
  EXPECT_FALSE(server->is_first_worker());
  EXPECT_EQ(server->server_index(), 1);
  EXPECT_EQ(server->worker_index(), -1);
  EXPECT_EQ(server->server_num(), 2);
  EXPECT_EQ(server->worker_num(), 3);
  EXPECT_EQ(server->server_endpoints(), endpoints);
  const auto worker = MakeFleet(cluster::Role::kWorker, 2, 3, endpoints);
  EXPECT_TRUE(worker->is_worker());
  EXPECT_FALSE(worker->is_first_worker());
  EXPECT_EQ(worker->worker_index(), 2);
  EXPECT_EQ(worker->server_index(), -1);
  EXPECT_TRUE(MakeFleet(cluster::Role::kWorker, 0, 3, endpoints)->is_first_worker());
}

TEST(Fleet, TheRoleIsWhatTheEnvironmentSays) {
  for (const std::string_view name : cluster::RoleVariables()) unsetenv(std::string(name).c_str());
  const auto alone = Fleet::Init();
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_TRUE((*alone)->alone());
  setenv("TRAINING_ROLE", "TRAINER", 1);
  EXPECT_THAT(Fleet::Init().status().message(),
              AllOf(HasSubstr("PADDLE_PSERVERS_IP_PORT_LIST"), HasSubstr("PADDLE_TRAINER_ID")));
  setenv("PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:7001", 1);
  setenv("PADDLE_TRAINERS_NUM", "2", 1);
  setenv("PADDLE_TRAINER_ID", "1", 1);
  const auto worker = Fleet::Init();
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ((*worker)->worker_index(), 1);
  for (const std::string_view name : cluster::RoleVariables()) unsetenv(std::string(name).c_str());
}

TEST(Fleet, CallsOutOfTurnAreRefused) {
  const auto alone = Alone();
  EXPECT_THAT(alone->BarrierWorker().message(), HasSubstr("after InitWorker"));
  EXPECT_THAT(alone->StartCommunicator().status().message(), HasSubstr("after InitWorker"));
  ASSERT_EQ(Joined(*alone), absl::OkStatus());
  EXPECT_EQ(Joined(*alone).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(alone->StartCommunicator().ok());
  EXPECT_EQ(alone->StartCommunicator().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(alone->LoadModel("x").message(), HasSubstr("before training"));
  const auto server = MakeFleet(cluster::Role::kServer, 0, 1, {"127.0.0.1:7001"});
  EXPECT_THAT(server->RunServer().message(), HasSubstr("after InitServer"));
  EXPECT_THAT(Joined(*server).message(), HasSubstr("is server 0"));
  EXPECT_THAT(server->SplitFiles({"a"}).status().message(), HasSubstr("is server 0"));
}

TEST(Fleet, ShrinkSaysWhyItIsNotThere) {
  const absl::Status status = Alone()->Shrink(0.5);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("ctr accessor"));
}

TEST(Fleet, AloneTheSameCallsDoTheirWorkAtOnce) {
  const TestFolder folder;
  const auto fleet = Alone();
  ASSERT_EQ(Joined(*fleet), absl::OkStatus());
  EXPECT_EQ(fleet->BarrierWorker(), absl::OkStatus());
  EXPECT_EQ(*fleet->AllReduceWorker(2.5, Reduce::kSum), 2.5);
  EXPECT_EQ(*fleet->AllReduceWorker(7, Reduce::kMax), 7);
  EXPECT_THAT(*fleet->SplitFiles({"a", "b"}), ElementsAre("a", "b"));
  const auto trained = Train(*fleet, 2);
  ASSERT_TRUE(trained.ok()) << trained.status();
  ASSERT_FALSE(trained->rows.empty());
  ASSERT_EQ(fleet->SavePersistables(folder / "new/model", {.epoch = 3, .step = 18}), absl::OkStatus());
  ASSERT_EQ(fleet->SavePersistables(folder / "new/model", {.epoch = 4, .step = 19}), absl::OkStatus()) << "replaces it";
  fleet->StopWorker();

  const auto reader = checkpoint::CheckpointReader::Open(folder / "new/model");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->manifest().run.epoch, 4u);
  const auto other = Alone();
  ASSERT_EQ(Joined(*other), absl::OkStatus());
  ASSERT_EQ(other->LoadModel(folder / "new/model"), absl::OkStatus());
  const auto loaded = ReadToy(other->model());
  EXPECT_EQ(loaded->rows, trained->rows);
  EXPECT_EQ(loaded->dense, trained->dense);
  EXPECT_EQ(Alone()->SavePersistables(folder / "x").code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Fleet, NobodyPassesABarrierBeforeAllHaveCome) {
  std::atomic<int> came{0};
  const auto ends = RunFleet({.servers = 1, .workers = 3}, [&](Fleet& fleet) -> absl::Status {
    RETURN_IF_ERROR(Joined(fleet));
    for (int round = 1; round <= 20; ++round) {
      ++came;
      RETURN_IF_ERROR(fleet.BarrierWorker());
      EXPECT_GE(came, 3 * round);
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
}

TEST(Fleet, AllReduceGivesEveryWorkerTheSame) {
  const auto ends = RunFleet({.servers = 2, .workers = 3}, [&](Fleet& fleet) -> absl::Status {
    RETURN_IF_ERROR(Joined(fleet));
    const int me = fleet.worker_index();
    const std::vector<double> mine{0.1 * (me + 1), -1.0 * me};
    const auto reduced = [&](Reduce how) {
      std::vector<double> numbers = mine;
      EXPECT_EQ(fleet.AllReduceWorker(numbers, how), absl::OkStatus());
      return numbers;
    };
    EXPECT_THAT(reduced(Reduce::kSum), ElementsAre((0.1 + 0.1 * 2) + 0.1 * 3, -3.0)) << "added in the order of ranks";
    EXPECT_THAT(reduced(Reduce::kMin), ElementsAre(0.1, -2.0));
    EXPECT_THAT(reduced(Reduce::kMax), ElementsAre(0.1 * 3, 0.0));
    std::vector<int64_t> counts{me, int64_t{1} << 60};
    EXPECT_EQ(fleet.AllReduceWorker(counts, Reduce::kSum), absl::OkStatus());
    EXPECT_THAT(counts, ElementsAre(3, int64_t{3} << 60)) << "more than a double could hold";
    EXPECT_EQ(*fleet.AllReduceWorker(me, Reduce::kMin), 0);
    EXPECT_EQ(*fleet.AllReduceWorker(uint64_t{5}, Reduce::kMax), 5);
    EXPECT_TRUE(std::isnan(*fleet.AllReduceWorker(me == 1 ? std::nan("") : 1.0, Reduce::kMin)));
    EXPECT_EQ(fleet.AllReduceWorker(std::numeric_limits<int64_t>::max(), Reduce::kSum).status().code(),
              absl::StatusCode::kOutOfRange);
    std::vector<double> uneven(me == 1 ? 2 : 1);
    EXPECT_THAT(fleet.AllReduceWorker(uneven, Reduce::kSum).message(), HasSubstr(me == 1 ? "worker 0" : "worker 1"));
    return fleet.BarrierWorker();
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
}

TEST(Fleet, FilesAreSplitInBlocksOrByTheirNumber) {
  const std::vector<std::string> files{"f-0", "f-1", "f-2", "f-3", "f-4"};
  std::vector<std::string> contiguous, mod;
  for (int rank = 0; rank < 3; ++rank) {
    const auto fleet = MakeFleet(cluster::Role::kWorker, rank, 3, {"127.0.0.1:7001"});
    const auto block = fleet->SplitFiles(files).value();
    const auto numbered = fleet->SplitFiles(files, data::FileSplit::kMod).value();
    contiguous.push_back(block.front() + ".." + block.back());
    mod.push_back(numbered.front() + ".." + numbered.back());
  }
  EXPECT_THAT(contiguous, ElementsAre("f-0..f-1", "f-2..f-3", "f-4..f-4"));
  EXPECT_THAT(mod, ElementsAre("f-0..f-3", "f-1..f-4", "f-2..f-2"));
}

TEST(Fleet, AJobGoesOnFromASaveAsIfItHadNotStopped) {
  const TestFolder folder;
  const ToyResult straight = RunJob({.servers = 2, .workers = 2}, 2, "");
  ASSERT_FALSE(straight.rows.empty());
  RunJob({.servers = 2, .workers = 2}, 1, folder / "half");
  // Servers that load it themselves, as many as before, more and fewer; and the first worker that fills them.
  for (const int servers : {2, 3, 1}) {
    const ToyResult resumed = RunJob({.servers = servers, .workers = 2, .init = folder / "half"}, 1, "");
    EXPECT_EQ(resumed.rows, straight.rows) << servers;
    EXPECT_EQ(resumed.dense, straight.dense) << servers;
  }
  const ToyResult filled = RunJob({.servers = 2, .workers = 2}, 1, "", folder / "half");
  EXPECT_EQ(filled.rows, straight.rows);
  EXPECT_EQ(filled.dense, straight.dense);
}

// A pass on one server, the next on two, and so on: each saves, and the next loads.
TEST(Fleet, AJobThatMovesFromServersToServersLearnsTheSameBits) {
  const TestFolder folder;
  const std::vector<int> servers = {1, 2, 3, 5, 1};
  const ToyResult straight = RunJob({.servers = 2, .workers = 2}, static_cast<int>(servers.size()), "");
  ASSERT_FALSE(straight.rows.empty());
  std::string save;
  ToyResult moved;
  for (size_t pass = 0; pass < servers.size(); ++pass) {
    const std::string next = folder / ("pass" + std::to_string(pass));
    moved = RunJob({.servers = servers[pass], .workers = 2, .init = save}, 1, next);
    save = next;
  }
  EXPECT_EQ(moved.rows, straight.rows);
  EXPECT_EQ(moved.dense, straight.dense);
}

TEST(Fleet, WorkersKnowHowFarTheLoadedSaveHadCome) {
  const TestFolder folder;
  const auto save = [&](const std::string& name, const checkpoint::RunState& run) {
    const auto fleet = Alone();
    EXPECT_EQ(Joined(*fleet), absl::OkStatus());
    EXPECT_EQ(fleet->loaded().steps, 0u);
    EXPECT_EQ(fleet->SavePersistables(folder / name, run), absl::OkStatus());
  };
  save("done", {.epoch = 3, .epoch_state = checkpoint::EpochState::kFinished, .step = 77});
  save("other", {.epoch = 3, .epoch_state = checkpoint::EpochState::kFinished, .step = 78});
  const auto ask = [&](const FleetJob& job, const std::string& load) {
    return RunFleet(job, [&](Fleet& fleet) -> absl::Status {
      RETURN_IF_ERROR(Joined(fleet));
      if (!load.empty()) RETURN_IF_ERROR(fleet.LoadModel(load));
      EXPECT_EQ(fleet.loaded().epochs, 4u);
      EXPECT_EQ(fleet.loaded().steps, 77u);
      return absl::OkStatus();
    });
  };
  EXPECT_THAT(ask({.servers = 2, .workers = 2, .init = folder / "done"}, ""), Each(absl::OkStatus()));
  EXPECT_THAT(ask({.servers = 2, .workers = 2}, folder / "done"), Each(absl::OkStatus()));
  // Servers that hold parts of two models are found out.
  const std::vector<std::string> endpoints{FreeEndpoint(0), FreeEndpoint(1)};
  for (const std::string second : {"", "other"}) {
    const auto a = MakeFleet(cluster::Role::kServer, 0, 1, endpoints);
    const auto b = MakeFleet(cluster::Role::kServer, 1, 1, endpoints);
    ASSERT_EQ(a->InitServer(folder / "done"), absl::OkStatus());
    ASSERT_EQ(b->InitServer(second.empty() ? "" : folder / second), absl::OkStatus());
    const auto worker = MakeFleet(cluster::Role::kWorker, 0, 1, endpoints);
    EXPECT_THAT(Joined(*worker).message(),
                AllOf(HasSubstr("a save of epoch 4, step 77"), HasSubstr(second.empty() ? "no save" : "step 78")));
  }
}

TEST(Fleet, ASaveThatDoesNotFitIsRefusedFieldByField) {
  const TestFolder folder;
  RunJob({.servers = 1, .workers = 1}, 1, folder / "save");
  const auto join = [&](const WorkerOptions& options) {
    return RunFleet({.servers = 1, .workers = 1, .init = folder / "save"},
                    [&](Fleet& fleet) { return fleet.InitWorker(options); })
        .front();
  };
  WorkerOptions wide = SyncToy();
  wide.tables.sparse[0].dim = 5;
  wide.tables.dense.parameters[0].shape = {38};
  EXPECT_THAT(join(wide).message(), AllOf(HasSubstr("dim: saved 3, wanted 5"), HasSubstr("[38]")));
  EXPECT_THAT(join(SyncToy("adam")).message(), HasSubstr("rule: saved adagrad, wanted adam"));
  WorkerOptions slower = SyncToy();
  slower.tables.sparse[0].rule.learning_rate = 0.01;
  EXPECT_EQ(join(slower), absl::OkStatus()) << "what changes only the steps to come may differ";
}

TEST(Fleet, ASaveGoesOnWithTheWorkersLearningRate) {
  const TestFolder folder;
  const ToyResult saved = RunJob({.servers = 2, .workers = 1}, 1, folder / "save");
  WorkerOptions slower = SyncToy();
  slower.tables.sparse[0].rule.learning_rate = 0.01;
  ToyResult found, trained, alone;
  const auto ends = RunFleet({.servers = 2, .workers = 1, .init = folder / "save"}, [&](Fleet& fleet) -> absl::Status {
    RETURN_IF_ERROR(fleet.InitWorker(slower));
    ASSIGN_OR_RETURN(found, ReadToy(fleet.model()));
    ASSIGN_OR_RETURN(trained, Train(fleet, 1));
    return absl::OkStatus();
  });
  EXPECT_THAT(ends, Each(absl::OkStatus()));
  EXPECT_EQ(found.rows, saved.rows);
  EXPECT_EQ(found.dense, saved.dense);
  const auto fleet = Alone();
  ASSERT_EQ(fleet->InitWorker(slower), absl::OkStatus());
  ASSERT_EQ(fleet->LoadModel(folder / "save"), absl::OkStatus());
  alone = Train(*fleet, 1).value();
  EXPECT_EQ(trained.rows, alone.rows);
  EXPECT_EQ(trained.dense, alone.dense);
}

TEST(Fleet, AServerSaysAtOnceThatASaveCannotBeRead) {
  const TestFolder folder;
  const auto start = [&](const std::string& dir) {
    return MakeFleet(cluster::Role::kServer, 0, 1, {FreeEndpoint(0)})->InitServer(dir);
  };
  EXPECT_EQ(start(folder / "none").code(), absl::StatusCode::kNotFound);
  RunJob({.servers = 1, .workers = 1}, 1, folder / "save");
  EXPECT_EQ(start(folder / "save"), absl::OkStatus());
  std::string data = base::ReadFile(folder / "save/data-000").value();
  data[data.size() / 2] ^= 1;
  ASSERT_EQ(base::WriteFileAtomically(folder / "save/data-000", data), absl::OkStatus());
  EXPECT_EQ(start(folder / "save").code(), absl::StatusCode::kDataLoss);
}

TEST(Fleet, AFailedSaveFailsForEveryWorker) {
  const TestFolder folder;
  ASSERT_EQ(base::WriteFileAtomically(folder / "file", "not a folder"), absl::OkStatus());
  const auto ends = RunFleet({.servers = 1, .workers = 2}, [&](Fleet& fleet) -> absl::Status {
    RETURN_IF_ERROR(Joined(fleet));
    return fleet.SavePersistables(folder / "file/save");
  });
  EXPECT_FALSE(ends[0].ok());
  EXPECT_THAT(ends[1].message(), HasSubstr("worker 0"));
}

}  // namespace
}  // namespace regatta::fleet
