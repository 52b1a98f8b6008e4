// Waits until every server answers as one, telling which are missing every three seconds.
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/credentials.h"

namespace regatta::client {

struct NamedChannel {
  std::string endpoint;
  std::shared_ptr<grpc::Channel> channel;
};

// DEADLINE_EXCEEDED names the endpoints that are not ready, and those where something else answers; CANCELLED when
// `cancelled` says so. What `credentials`, those of the channels (null: none), will never open ends the wait at once:
// UNAUTHENTICATED by the token, FAILED_PRECONDITION by TLS.
absl::Status AwaitServers(const std::vector<NamedChannel>& servers, std::chrono::duration<double> timeout,
                          const std::function<bool()>& cancelled, const cluster::Credentials* credentials = nullptr);

}  // namespace regatta::client
