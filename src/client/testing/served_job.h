// Servers in this process, and the options with which the workers of a small job connect to them, for tests.
// Thread-safety: options is concurrent; the rest belongs to one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client_options.h"
#include "client/job_layout.h"
#include "server/ps_server.h"

namespace regatta::client {

class ServedJob {
 public:
  explicit ServedJob(int workers, int servers = 1, server::ServerOptions options = {}) : workers_(workers) {
    options.listen = {"127.0.0.1:0"};
    options.workers = workers;
    const std::string data_dir = options.data_dir;
    for (int i = 0; i < servers; ++i) {
      if (!data_dir.empty()) options.data_dir = absl::StrCat(data_dir, "/", i);
      servers_.push_back(server::PsServer::Start(options).value());
    }
    ends_.resize(servers_.size());
    for (size_t i = 0; i < servers_.size(); ++i) threads_.emplace_back([this, i] { ends_[i] = servers_[i]->Wait(); });
  }
  ~ServedJob() {
    for (const auto& server : servers_) server->Stop();
    Join();
  }

  // How each server ended, when all have; they end by themselves when all workers are done.
  const std::vector<absl::Status>& Ends() {
    Join();
    return ends_;
  }

  ClientOptions options(int rank, uint64_t incarnation = 1) const {
    ClientOptions options;
    for (const auto& server : servers_) options.servers.push_back({server->endpoints(), {}});
    options.worker.set_rank(static_cast<uint32_t>(rank));
    options.worker.set_incarnation(incarnation * 100 + static_cast<uint64_t>(rank));
    options.worker.set_where(absl::StrCat("here ", incarnation));
    options.job.set_mode("async");
    options.job.set_workers(static_cast<uint32_t>(workers_));
    options.job.set_sparse_lanes(1);
    options.job.set_nan_policy("skip");
    options.job.set_on_worker_loss("fail");
    table::SparseTableConfig sparse;
    sparse.name = "t";
    sparse.dim = 1;
    sparse.rule.name = "sgd";
    sparse.rule.learning_rate = 1;
    sparse.init = {"constant", 0, 0};
    options.tables.sparse.push_back(sparse);
    options.tables.dense.parameters = {{"w", {3}, {"constant", 0, 0}}};
    options.tables.dense.rule = sparse.rule;
    options.wait_timeout = std::chrono::seconds(20);
    return options;
  }

 private:
  void Join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  const int workers_;
  std::vector<std::unique_ptr<server::PsServer>> servers_;
  std::vector<absl::Status> ends_;
  std::vector<std::thread> threads_;
};

}  // namespace regatta::client
