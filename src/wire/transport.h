// How both ends set gRPC up: message limits, windows for megabyte frames, keepalive, no proxy, no retries of its own.
#pragma once

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include "base/status.h"

namespace regatta::wire {

// Each channel made with these has a connection of its own.
grpc::ChannelArguments ClientArguments();
void ConfigureServer(grpc::ServerBuilder& builder);

// The two status types, into each other; messages are kept.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace regatta::wire
