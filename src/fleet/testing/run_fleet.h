// A whole job of Fleets in one process, for tests: every server and worker is a thread that has been told its role.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleet/fleet.h"

namespace regatta::fleet {

struct FleetJob {
  int servers = 1;
  int workers = 1;
  std::string init = {};      // what servers start from
  std::string data_dir = {};  // where servers have a folder each; "" = none
};

// A loopback address of this process's own and a port that was free there.
inline std::string FreeEndpoint(int index) {
  const int host = static_cast<int>(getpid() % 200) + 20;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f000000u + static_cast<uint32_t>(host << 8) + static_cast<uint32_t>(index + 1));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return "127.0." + std::to_string(host) + "." + std::to_string(index + 1) + ":" +
         std::to_string(ntohs(address.sin_port));
}

inline std::unique_ptr<Fleet> MakeFleet(cluster::Role role, int id, int workers,
                                        const std::vector<std::string>& endpoints) {
  auto fleet = Fleet::Init(
      cluster::UserDefinedRole{.role = role, .current_id = id, .worker_num = workers, .server_endpoints = endpoints});
  EXPECT_TRUE(fleet.ok()) << fleet.status();
  return *std::move(fleet);
}

// Runs `fn` in every worker; what each returned, by rank. Expects that the servers end well, and stops them if a worker
// failed.
inline std::vector<absl::Status> RunFleet(const FleetJob& job, const std::function<absl::Status(Fleet&)>& fn) {
  std::vector<std::string> endpoints;
  for (int i = 0; i < job.servers; ++i) endpoints.push_back(FreeEndpoint(i));
  std::vector<std::unique_ptr<Fleet>> servers;
  for (int i = 0; i < job.servers; ++i) {
    servers.push_back(MakeFleet(cluster::Role::kServer, i, job.workers, endpoints));
    const absl::Status started =
        servers.back()->InitServer(job.init, job.data_dir.empty() ? "" : job.data_dir + "/server." + std::to_string(i));
    EXPECT_EQ(started, absl::OkStatus());
    if (!started.ok()) return {started};
  }
  std::vector<absl::Status> ends(servers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < servers.size(); ++i) threads.emplace_back([&, i] { ends[i] = servers[i]->RunServer(); });
  std::vector<absl::Status> results(static_cast<size_t>(job.workers));
  std::vector<std::thread> workers;
  for (int rank = 0; rank < job.workers; ++rank) {
    workers.emplace_back([&, rank] {
      const auto fleet = MakeFleet(cluster::Role::kWorker, rank, job.workers, endpoints);
      results[static_cast<size_t>(rank)] = fn(*fleet);
      fleet->StopWorker(results[static_cast<size_t>(rank)]);
    });
  }
  for (std::thread& worker : workers) worker.join();
  bool failed = false;
  for (const absl::Status& result : results) failed |= !result.ok();
  for (const auto& server : servers)
    if (failed) server->StopServer();
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < ends.size() && !failed; ++i) EXPECT_EQ(ends[i], absl::OkStatus()) << "server " << i;
  return results;
}

}  // namespace regatta::fleet
