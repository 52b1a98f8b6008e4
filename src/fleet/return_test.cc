// Workers that die and come back, in one process: another worker takes the place of one that is in the middle of a
// step.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <thread>

#include "base/random.h"
#include "base/testing/test_folder.h"
#include "fleet/testing/toy_model.h"
#include "fleet/worker_node.h"
#include "server/ps_server.h"

namespace regatta::fleet {
namespace {

constexpr uint64_t kReturnSteps = 120;

// What rank's `steps` steps of pass 0 leave to do for `worker`.
using Pass = std::function<absl::Status(comm::Communicator& comm, int rank, uint64_t step)>;

enum class Order { kAscending, kFirstStepLast };

absl::Status RunPass(WorkerNode& worker, const Pass& pass, Order order = Order::kAscending) {
  ASSIGN_OR_RETURN(comm::Communicator* const comm, worker.StartCommunicator(0));
  const base::DataPosition done = worker.resume_point().position;
  base::PassKeys keys;
  keys.learnt = done;
  RETURN_IF_ERROR(comm->BeginPass(keys));
  for (uint64_t i = 0; i < kReturnSteps; ++i) {
    const uint64_t step = order == Order::kAscending ? i : (i + 1) % kReturnSteps;
    if (!done.Contains(step)) RETURN_IF_ERROR(pass(*comm, worker.rank(), step));
  }
  return comm->EndPass();
}

// Every rank is taken over `deaths` times, at moments that `seed` draws.
ToyResult Disturb(const WorkerOptions& worker_options, const Pass& pass, int deaths, uint64_t seed,
                  Order order = Order::kAscending) {
  constexpr int kServers = 2, kWorkers = 2;
  base::TestFolder folder;
  std::vector<std::unique_ptr<server::PsServer>> servers;
  WorkerOptions options = worker_options;
  options.workers = kWorkers;
  options.on_loss = base::LossPolicy::kAwait;
  options.wait_timeout = std::chrono::seconds(20);
  for (int i = 0; i < kServers; ++i) {
    server::ServerOptions serving;
    serving.listen = {"127.0.0.1:0"};
    serving.workers = kWorkers;
    serving.data_dir = absl::StrCat(folder.path(), "/", i);
    serving.lives = std::chrono::seconds(0);  // the process before is not killed here
    servers.push_back(server::PsServer::Start(serving).value());
    options.servers.push_back({servers.back()->endpoints(), {}});
  }
  std::vector<std::thread> serving;
  for (const auto& server : servers) serving.emplace_back([&server] { EXPECT_EQ(server->Wait(), absl::OkStatus()); });
  ToyResult result;
  const auto live = [&](int rank) -> absl::Status {
    WorkerOptions mine = options;
    mine.rank = rank;
    base::Rng rng(seed * 100 + static_cast<uint64_t>(rank));
    ASSIGN_OR_RETURN(std::unique_ptr<WorkerNode> worker, WorkerNode::Start(mine));
    for (int life = 0; life < deaths; ++life) {
      absl::Status end;
      std::thread training([&] { end = RunPass(*worker, pass, order); });
      std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(60'000)));
      auto next = WorkerNode::Start(mine);
      training.join();
      RETURN_IF_ERROR(next.status());
      EXPECT_TRUE(end.ok() || absl::IsFailedPrecondition(end)) << end;
      EXPECT_TRUE((*next)->resume_point().returns());
      worker = *std::move(next);
    }
    RETURN_IF_ERROR(RunPass(*worker, pass, order));
    RETURN_IF_ERROR(worker->Barrier("trained"));
    if (rank == 0) {
      ASSIGN_OR_RETURN(result, ReadToy(worker->model()));
    }
    RETURN_IF_ERROR(worker->Barrier("read"));
    worker->Stop(absl::OkStatus());
    return absl::OkStatus();
  };
  std::vector<std::thread> workers;
  for (int rank = 0; rank < kWorkers; ++rank)
    workers.emplace_back([&, rank] { EXPECT_EQ(live(rank), absl::OkStatus()) << "worker " << rank; });
  for (std::thread& thread : workers) thread.join();
  if (::testing::Test::HasFailure())
    for (const auto& server : servers) server->Stop();
  for (std::thread& thread : serving) thread.join();
  return result;
}

absl::Status ToyPass(comm::Communicator& comm, int rank, uint64_t step) {
  return RunToyStep(comm, rank, step, 0, 0, 0);
}

// A row of its own for every step, and one that all steps share.
absl::Status LedgerPass(comm::Communicator& comm, int rank, uint64_t step) {
  const base::GroupedKeys grouped({kSharedKey, base::Key{1000} * static_cast<uint64_t>(rank + 1) + step});
  const base::TableKeys keys = grouped.view();
  base::StepRows rows;
  RETURN_IF_ERROR(comm.Pull({.step = step, .thread = 0, .kind = base::StepKind::kTrain, .tables = {&keys, 1}}, &rows));
  const std::vector<float> ones(3, -1.0f);
  base::TableGrads table;
  table.keys = keys;
  table.grads = {ones.data(), 1, 1};
  const base::DenseGrad piece{0, ones};
  base::StepGrads grads;
  grads.step = grads.batch = step;
  grads.samples = 1;
  grads.tables = {&table, 1};
  grads.dense = {&piece, 1};
  return comm.Commit(grads);
}

TEST(Return, SyncIsWhatItIsUndisturbedToTheBit) {
  WorkerOptions options;
  options.mode = base::Mode::kSync;
  options.sparse_lanes = 2;
  options.tables = ToyTables("adam");
  const ToyResult want = Disturb(options, ToyPass, 0, 0);
  ASSERT_FALSE(want.rows.empty());
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const ToyResult got = Disturb(options, ToyPass, 6, seed);
    EXPECT_EQ(got.rows, want.rows) << seed;
    EXPECT_EQ(got.dense, want.dense) << seed;
  }
}

TEST(Return, AsyncPushesEveryBatchOnce) {
  WorkerOptions options;
  options.mode = base::Mode::kAsync;
  options.sparse_lanes = 2;
  options.tables = LedgerTables();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const ToyResult got = Disturb(options, LedgerPass, 6, seed);
    EXPECT_EQ(got.rows.size(), 2 * kReturnSteps + 1);
    for (const auto& [key, row] : got.rows)
      EXPECT_EQ(row[0], key == kSharedKey ? 2.0f * kReturnSteps : 1.0f) << "key " << key << ", seed " << seed;
  }
}

// As if the thread that has the first batch were slower than all others: the window is as wide as the pass.
TEST(Return, AsyncPushesEveryBatchOnceThroughAWideWindow) {
  static_assert(kReturnSteps > 64 + 20);
  WorkerOptions options;
  options.mode = base::Mode::kAsync;
  options.sparse_lanes = 2;
  options.tables = LedgerTables();
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const ToyResult got = Disturb(options, LedgerPass, 6, seed, Order::kFirstStepLast);
    EXPECT_EQ(got.rows.size(), 2 * kReturnSteps + 1);
    for (const auto& [key, row] : got.rows)
      EXPECT_EQ(row[0], key == kSharedKey ? 2.0f * kReturnSteps : 1.0f) << "key " << key << ", seed " << seed;
  }
}

TEST(Return, HalfAsyncPushesEveryGroupOnce) {
  WorkerOptions options;
  options.mode = base::Mode::kHalfAsync;
  options.half_async_merge = 4;
  options.tables = LedgerTables();
  const ToyResult want = Disturb(options, LedgerPass, 0, 0);
  ASSERT_FALSE(want.rows.empty());
  for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(Disturb(options, LedgerPass, 6, seed).rows, want.rows) << seed;
}

TEST(Return, WithoutALogTheServersRefuseIt) {
  auto server = server::PsServer::Start({.listen = {"127.0.0.1:0"}, .workers = 1}).value();
  WorkerOptions options;
  options.servers.push_back({server->endpoints(), {}});
  options.tables = ToyTables("adam");
  options.on_loss = base::LossPolicy::kAwait;
  const auto worker = WorkerNode::Start(options);
  EXPECT_EQ(worker.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(worker.status().message().find("--data_dir"), std::string::npos) << worker.status();
  server->Stop();
  server->Wait().IgnoreError();
}

// Servers, a data_dir each, that are started and ended together.
class KeptServers {
 public:
  explicit KeptServers(const std::vector<std::string>& data_dirs, const std::string& listen = "127.0.0.1:0") {
    for (const std::string& data_dir : data_dirs) {
      server::ServerOptions options;
      options.listen = {listen};
      options.workers = 1;
      options.data_dir = data_dir;
      servers_.push_back(server::PsServer::Start(options).value());
    }
    ends_.resize(servers_.size());
    for (size_t i = 0; i < servers_.size(); ++i) waiting_.emplace_back([this, i] { ends_[i] = servers_[i]->Wait(); });
  }
  ~KeptServers() {
    for (const auto& server : servers_) server->Stop();
    Wait();
  }
  const std::string& endpoint() const { return servers_.front()->endpoints().front(); }
  // How they ended by themselves.
  const std::vector<absl::Status>& Wait() {
    for (std::thread& thread : waiting_) thread.join();
    waiting_.clear();
    return ends_;
  }
  absl::StatusOr<std::unique_ptr<WorkerNode>> Join(base::Mode mode = base::Mode::kAsync) const {
    WorkerOptions options;
    options.mode = mode;
    options.tables = LedgerTables();
    options.on_loss = base::LossPolicy::kAwait;
    options.wait_timeout = std::chrono::seconds(20);
    for (const auto& server : servers_) options.servers.push_back({server->endpoints(), {}});
    return WorkerNode::Start(options);
  }

 private:
  std::vector<std::unique_ptr<server::PsServer>> servers_;
  std::vector<std::thread> waiting_;
  std::vector<absl::Status> ends_;
};

// Pushes batches 0 … 6 and ends with `why`.
void TrainAWhile(const KeptServers& servers, const absl::Status& why) {
  auto worker = servers.Join();
  ASSERT_TRUE(worker.ok()) << worker.status();
  auto comm = (*worker)->StartCommunicator(0);
  ASSERT_TRUE(comm.ok()) << comm.status();
  ASSERT_EQ((*comm)->BeginPass({}), absl::OkStatus());
  for (uint64_t step = 0; step < 7; ++step) ASSERT_EQ(LedgerPass(**comm, 0, step), absl::OkStatus());
  ASSERT_EQ((*comm)->EndPass(), absl::OkStatus());
  (*worker)->Stop(why);
}

TEST(Return, AJobWhoseWorkersGaveUpGoesOnWhenAllAreStartedAgain) {
  const base::TestFolder folder;
  const std::vector<std::string> data_dirs = {folder.path() + "/0", folder.path() + "/1"};
  {
    KeptServers servers(data_dirs);
    TrainAWhile(servers, absl::ResourceExhaustedError("no room"));
    for (const absl::Status& end : servers.Wait()) EXPECT_TRUE(absl::IsAborted(end)) << end;
  }
  {
    KeptServers servers(data_dirs);
    const auto worker = servers.Join();
    ASSERT_TRUE(worker.ok()) << worker.status();
    EXPECT_TRUE((*worker)->resume_point().returns());
    EXPECT_EQ((*worker)->resume_point().position.low, 7u);
    (*worker)->Stop(absl::OkStatus());
    for (const absl::Status& end : servers.Wait()) EXPECT_EQ(end, absl::OkStatus());
  }
  const auto worker = KeptServers(data_dirs).Join();  // it was done: another begins
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_FALSE((*worker)->resume_point().returns());
}

// A launcher that starts killed servers again tells them since when: they neither begin the job anew nor wait for it.
TEST(Return, AServerThatIsStartedAgainForAJobThatIsDoneEnds) {
  const base::TestFolder folder;
  const std::vector<std::string> data_dirs = {folder.path() + "/0", folder.path() + "/1"};
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  server::ServerOptions options{.listen = {"127.0.0.1:0"}, .workers = 1, .data_dir = data_dirs[0]};
  options.since = now();
  {
    KeptServers servers(data_dirs);
    TrainAWhile(servers, absl::OkStatus());
    for (const absl::Status& end : servers.Wait()) EXPECT_EQ(end, absl::OkStatus());
  }
  for (int i = 0; i < 2; ++i) {
    const auto done = server::PsServer::Start(options);
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(*done, nullptr);
  }
  options.since = now();
  const auto later = server::PsServer::Start(options);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_NE(*later, nullptr) << "another job, which begins anew";
}

// The server wrote down that the worker is done, and was killed before it answered. When it comes back everybody is
// done, and the worker says goodbye once more.
TEST(Return, AGoodbyeThatWasRecordedAndNotAnsweredIsAnsweredByTheServerThatComesBack) {
  const base::TestFolder folder;
  server::ServerOptions options{.listen = {"127.0.0.1:0"}, .workers = 1, .data_dir = folder.path() + "/0"};
  auto server = server::PsServer::Start(options).value();
  options.listen = server->endpoints();
  WorkerOptions joining;
  joining.tables = LedgerTables();
  joining.servers.push_back({server->endpoints(), {}});
  auto worker = WorkerNode::Start(joining);
  ASSERT_TRUE(worker.ok()) << worker.status();
  server->job()->roster().Leave(server->job()->roster().members().front().id);
  server.reset();
  server = server::PsServer::Start(options).value();
  ASSERT_NE(server, nullptr);
  std::thread serving([&] { EXPECT_EQ(server->Wait(), absl::OkStatus()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // it has looked who is missing
  const auto start = std::chrono::steady_clock::now();
  (*worker)->Stop(absl::OkStatus());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  serving.join();
}

TEST(Return, AServerThatKnowsItsPlaceRefusesTheFolderOfAnother) {
  const base::TestFolder folder;
  const std::vector<std::string> data_dirs = {folder.path() + "/0", folder.path() + "/1"};
  {
    KeptServers servers(data_dirs);
    TrainAWhile(servers, absl::ResourceExhaustedError("no room"));
    servers.Wait();
  }
  server::ServerOptions options{.listen = {"127.0.0.1:0"}, .workers = 1, .data_dir = data_dirs[1]};
  options.place = server::ServerPlace{0, 2};
  const absl::Status refused = server::PsServer::Start(options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  for (const std::string& part : {data_dirs[1], std::string("server 1"), std::string("server 0")})
    EXPECT_NE(refused.message().find(part), std::string::npos) << refused;
  options.place = server::ServerPlace{1, 2};
  EXPECT_TRUE(server::PsServer::Start(options).ok());
}

// What was not exchanged is lost with the worker, and learnt again.
TEST(Return, GeoGoesOnAfterItsLastExchange) {
  const base::TestFolder folder;
  const std::vector<std::string> data_dirs = {folder.path() + "/0", folder.path() + "/1"};
  {
    KeptServers servers(data_dirs);
    auto worker = servers.Join(base::Mode::kGeo);
    ASSERT_TRUE(worker.ok()) << worker.status();
    auto comm = (*worker)->StartCommunicator(0);
    ASSERT_TRUE(comm.ok()) << comm.status();
    ASSERT_EQ((*comm)->BeginPass({}), absl::OkStatus());
    for (uint64_t step = 0; step < 32; ++step) {
      ASSERT_EQ(LedgerPass(**comm, 0, step), absl::OkStatus());
      if (step == 2 || step == 29) {  // a round ends with batch 30, and the next one with batch 33
        ASSERT_EQ((*comm)->Flush(), absl::OkStatus());
      }
    }
    (*worker)->Stop(absl::ResourceExhaustedError("no room"));
    for (const absl::Status& end : servers.Wait()) EXPECT_TRUE(absl::IsAborted(end)) << end;
  }
  KeptServers servers(data_dirs);
  auto worker = servers.Join(base::Mode::kGeo);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_TRUE((*worker)->resume_point().returns());
  EXPECT_EQ((*worker)->resume_point().position.low, 30u);
  ASSERT_EQ(RunPass(**worker, LedgerPass), absl::OkStatus());
  const auto got = ReadToy((*worker)->model());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->rows.size(), kReturnSteps + 1);
  // An exchange that covers several rounds counts as a part in each: on a slow machine their sum is rounded.
  for (const auto& [key, row] : got->rows) {
    const float want = key == kSharedKey ? 1.0f * kReturnSteps : 1.0f;
    EXPECT_NEAR(row[0], want, 1e-6f * want) << "key " << key;
  }
  (*worker)->Stop(absl::OkStatus());
}

TEST(Return, ServersWhoseFoldersAreNotOfOneJobAreRefused) {
  const base::TestFolder folder;
  const auto dir = [&](const char* name) { return folder.path() + "/" + name; };
  {
    KeptServers servers({dir("a0"), dir("a1")});
    TrainAWhile(servers, absl::ResourceExhaustedError("no room"));
    servers.Wait();
  }
  {
    KeptServers servers({dir("b0"), dir("b1")});
    TrainAWhile(servers, absl::ResourceExhaustedError("no room"));
    servers.Wait();
  }
  const struct {
    const char* first;
    const char* second;
    const char* says;
  } cases[] = {{"a0", "empty", "server 0 goes on with a job of which this server knows nothing"},
               {"empty", "a1", "goes on with another job than server 0"},
               {"a0", "b1", "goes on with another job than server 0"}};
  for (const auto& [first, second, says] : cases) {
    const auto refused = KeptServers({dir(first), dir(second)}).Join();
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << refused.status();
    EXPECT_NE(refused.status().message().find(says), std::string::npos) << refused.status();
    EXPECT_NE(refused.status().message().find(dir(second)), std::string::npos) << refused.status();
    std::filesystem::remove_all(dir("empty"));
  }
  const auto worker = KeptServers({dir("a0"), dir("a1")}).Join();  // nothing was lost by it
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ((*worker)->resume_point().position.low, 7u);
}

TEST(Return, AWorkerIsToldThatItsServerCameBackWithAnotherJob) {
  const base::TestFolder folder;
  {
    KeptServers other({folder / "other"});
    TrainAWhile(other, absl::ResourceExhaustedError("no room"));
    other.Wait();
  }
  auto servers = std::make_unique<KeptServers>(std::vector{folder / "own"});
  const std::string endpoint = servers->endpoint();
  auto worker = servers->Join();
  ASSERT_TRUE(worker.ok()) << worker.status();
  auto comm = (*worker)->StartCommunicator(0);
  ASSERT_TRUE(comm.ok()) << comm.status();
  ASSERT_EQ((*comm)->BeginPass({}), absl::OkStatus());
  servers.reset();
  const KeptServers wrong({folder / "other"}, endpoint);
  const absl::Status end = LedgerPass(**comm, 0, 0);
  EXPECT_EQ(end.code(), absl::StatusCode::kFailedPrecondition) << end;
  EXPECT_NE(end.message().find("has another job than that of worker 0, the one in " + folder / "other"),
            std::string::npos)
      << end;
}

}  // namespace
}  // namespace regatta::fleet
