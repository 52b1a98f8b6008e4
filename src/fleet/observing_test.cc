// What a running job tells of itself, to its first worker and to whoever asks its servers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fleet/testing/run_cluster.h"
#include "fleet/testing/toy_model.h"
#include "server/status_query.h"

namespace regatta::fleet {
namespace {

constexpr std::chrono::seconds kTimeout(30);

// Whether `condition` came true in time.
template <typename Condition>
bool Await(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kTimeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

std::vector<server::ServerAnswer> Ask(const WorkerNode& worker) {
  std::vector<std::string> endpoints;
  for (int i = 0; i < worker.servers(); ++i) endpoints.push_back(worker.endpoint(i));
  return server::AskServers(endpoints, kTimeout, nullptr);
}

TEST(Observing, HeartbeatsBringProgressToTheFirstWorkerAndToEveryServer) {
  ClusterOptions options;
  options.servers = 2;
  options.workers = 2;
  options.worker.tables = ToyTables("sgd");
  RunCluster(options, [](WorkerNode& worker) -> absl::Status {
    client::WorkerProgress mine;
    mine.set_samples(10 * static_cast<uint64_t>(worker.rank() + 1));
    worker.SetProgress(mine);
    if (worker.first()) {
      EXPECT_TRUE(Await([&] {
        const std::map<int, client::WorkerProgress> all = worker.progress();
        return all.size() == 2 && all.at(0).samples() == 10 && all.at(1).samples() == 20;
      }));
      for (const int server : {0, 1})
        EXPECT_TRUE(Await([&] {
          const auto answers = Ask(worker);
          const ps::StatusReply& reply = answers[static_cast<size_t>(server)].reply;
          return reply.members_size() == 2 && reply.members(1).progress().samples() == 20;
        }));
    }
    return worker.Barrier("seen");
  });
}

// Pushes that worker 0 made in `mode` and whose staleness it was told, while somebody asks for the status all the time.
uint64_t MeasuredPushes(base::Mode mode, uint64_t steps) {
  ClusterOptions options;
  options.workers = 2;
  options.worker.mode = mode;
  options.worker.threads = 2;
  options.worker.half_async_merge = 4;
  options.worker.tables = ToyTables("sgd");
  std::atomic<uint64_t> measured{0};
  RunCluster(options, [&](WorkerNode& worker) -> absl::Status {
    std::atomic<bool> over{false};
    std::thread observer([&] {
      while (!over) {
        for (const server::ServerAnswer& answer : Ask(worker)) EXPECT_EQ(answer.status, absl::OkStatus());
      }
    });
    const absl::Status trained = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(comm::Communicator * comm, worker.StartCommunicator(0));
      return RunToyPass(*comm, worker.rank(), 0, 0, steps, 2);
    }();
    over = true;
    observer.join();
    RETURN_IF_ERROR(trained);
    if (worker.first()) {
      measured = worker.traffic(0).staleness.count();
      EXPECT_EQ(worker.traffic(0).pushes_in_flight.load(), 0);
      EXPECT_GT(worker.traffic(0).pull.count(), 0u);
      const ps::StatusReply reply = Ask(worker).front().reply;
      EXPECT_EQ(reply.mode(), Name(mode));
      EXPECT_GT(reply.keys_pushed(), 0u);
    }
    return worker.Barrier("read");
  });
  return measured;
}

TEST(Observing, EveryPushOfAStepIsToldHowStaleItWas) {
  EXPECT_EQ(MeasuredPushes(base::Mode::kAsync, 42), 42u);
  EXPECT_EQ(MeasuredPushes(base::Mode::kHalfAsync, 42), 11u);  // ten groups of four, and two
  EXPECT_EQ(MeasuredPushes(base::Mode::kSync, 42), 0u);        // nothing is stale
}

}  // namespace
}  // namespace regatta::fleet
