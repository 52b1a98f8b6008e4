// What a worker brings when it connects to its job's servers.
// Thread-safety: plain values.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "client/server_address.h"
#include "cluster/credentials.h"
#include "table/table_config.h"
#include "wire/ps.pb.h"

namespace regatta::client {

struct ClientOptions {
  std::vector<ServerAddress> servers;
  ps::WorkerId worker;
  ps::JobSpec job;  // servers, workers and tables_json are filled in
  table::ModelConfig tables;
  ps::Precision precision = ps::FLOAT32;  // of rows, dense parameters and gradients while training
  std::chrono::duration<double> wait_timeout{600};
  std::shared_ptr<const cluster::Credentials> credentials;  // null: none
  std::function<bool()> cancelled = [] { return false; };   // asked while it waits for servers and other workers
  std::function<bool()> given_up = [] { return false; };    // asked now and then: answers under way are not wanted
};

}  // namespace regatta::client
