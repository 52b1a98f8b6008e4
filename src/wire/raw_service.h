// The lane's two ends with frames as bytes: what protoc generates for Lane, with grpc::ByteBuffer in place of Frame, so
// that wire/frame.h reads and writes them without a copy.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <functional>
#include <memory>

#include "wire/ps.grpc.pb.h"

namespace regatta::wire {

using LaneStream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
using LaneCall = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

inline constexpr char kLaneMethod[] = "/regatta.ps.ParameterServer/Lane";

// ParameterServer's service whose Lane takes bytes. The other verbs are overridden as usual.
class RawService : public ps::ParameterServer::Service {
 public:
  RawService();
  virtual grpc::Status RawLane(grpc::ServerContext* context, LaneStream* stream) = 0;
};

std::unique_ptr<LaneCall> OpenLane(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context);

}  // namespace regatta::wire
