// A whole job in one process, for tests: servers on free loopback ports, a thread a worker.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "fleet/worker_node.h"
#include "server/ps_server.h"

namespace regatta::fleet {

struct ClusterOptions {
  int servers = 1;
  int workers = 1;
  WorkerOptions worker;  // servers, rank and workers are filled in
  std::string load;
  std::chrono::duration<double> worker_timeout{10};
  std::shared_ptr<const cluster::Credentials> credentials = nullptr;   // the servers'
  std::shared_ptr<const cluster::Credentials> first_worker = nullptr;  // where it has others than `worker`
};

// Runs `fn` in every worker, expects that it and every server end well.
inline void RunCluster(const ClusterOptions& options, const std::function<absl::Status(WorkerNode&)>& fn) {
  std::vector<std::unique_ptr<server::PsServer>> servers;
  WorkerOptions base = options.worker;
  base.workers = options.workers;
  base.wait_timeout = std::chrono::seconds(20);
  for (int i = 0; i < options.servers; ++i) {
    auto server = server::PsServer::Start({.listen = {"127.0.0.1:0"},
                                           .workers = options.workers,
                                           .load = options.load,
                                           .worker_timeout = options.worker_timeout,
                                           .credentials = options.credentials});
    ASSERT_TRUE(server.ok()) << server.status();
    base.servers.push_back({(*server)->endpoints(), {}});
    servers.push_back(*std::move(server));
  }
  std::vector<absl::Status> ends(servers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < servers.size(); ++i) threads.emplace_back([&, i] { ends[i] = servers[i]->Wait(); });
  std::vector<absl::Status> results(static_cast<size_t>(options.workers));
  std::vector<std::thread> workers;
  for (int rank = 0; rank < options.workers; ++rank) {
    workers.emplace_back([&, rank] {
      WorkerOptions mine = base;
      mine.rank = rank;
      if (rank == 0 && options.first_worker != nullptr) mine.credentials = options.first_worker;
      auto worker = WorkerNode::Start(mine);
      absl::Status& result = results[static_cast<size_t>(rank)];
      result = worker.status();
      if (!worker.ok()) return;
      result = fn(**worker);
      (*worker)->Stop(result);
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (size_t rank = 0; rank < results.size(); ++rank) EXPECT_EQ(results[rank], absl::OkStatus()) << "worker " << rank;
  for (const auto& server : servers)
    if (::testing::Test::HasFailure()) server->Stop();
  for (std::thread& thread : threads) thread.join();
  if (::testing::Test::HasFailure()) return;  // the servers were stopped
  for (size_t i = 0; i < ends.size(); ++i) EXPECT_EQ(ends[i], absl::OkStatus()) << "server " << i;
}

}  // namespace regatta::fleet
