// How both ends set gRPC up: message limits, windows for megabyte frames, keepalive, no proxy, no retries of its own;
// TLS with certificates on both sides, and a token with every call, where there are credentials.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "cluster/credentials.h"

namespace regatta::wire {

// Each channel made with these has a connection of its own.
grpc::ChannelArguments ClientArguments();
// A channel to `endpoint`; every call on it carries the token. `credentials` null: in the clear.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& endpoint, const cluster::Credentials* credentials,
                                           const grpc::ChannelArguments& arguments = ClientArguments());

void ConfigureServer(grpc::ServerBuilder& builder);
// Lets in who shows a certificate of the same authority: nobody else gets as far as gRPC. Null: everybody, in the
// clear.
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const cluster::Credentials* credentials);

// The metadata that carries the token, and what stands before it.
inline constexpr char kTokenKey[] = "authorization";
inline constexpr char kTokenPrefix[] = "Bearer ";

// The two status types, into each other; messages are kept.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace regatta::wire
