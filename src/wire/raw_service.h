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
// Invariant: every verb of ps.proto is asked of the guard first, before a byte of the request is read; a verb that is
// not on the list in raw_service.cc trips a CHECK when the service is made.
class RawService : public ps::ParameterServer::Service {
 public:
  // Not OK: the call goes no further. Concurrent.
  using Guard = std::function<grpc::Status(const grpc::ServerContext&)>;
  explicit RawService(Guard guard);
  virtual grpc::Status RawLane(grpc::ServerContext* context, LaneStream* stream) = 0;

 private:
  template <typename Request, typename Reply>
  int GuardVerb(int index,
                grpc::Status (ps::ParameterServer::Service::*verb)(grpc::ServerContext*, const Request*, Reply*));

  const Guard guard_;
};

std::unique_ptr<LaneCall> OpenLane(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context);

}  // namespace regatta::wire
