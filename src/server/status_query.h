// Asks the servers of a job for their status, all at once.
// Thread-safety: a pure function of what the servers say.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/credentials.h"
#include "wire/ps.pb.h"

namespace regatta::server {

struct ServerAnswer {
  std::string endpoint;
  absl::Status status;  // why there is no reply
  ps::StatusReply reply;
};

// In the order of `endpoints`; takes `timeout` at most, and a second more to find out why a connection failed.
// `credentials` null: in the clear.
std::vector<ServerAnswer> AskServers(const std::vector<std::string>& endpoints, std::chrono::duration<double> timeout,
                                     const cluster::Credentials* credentials);

}  // namespace regatta::server
