#include "wire/raw_service.h"

#include <grpcpp/impl/codegen/client_callback.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>

namespace regatta::wire {

// MarkMethodStreamed swaps the handler of a method that the generated constructor has added.
RawService::RawService() {
  constexpr int kLaneIndex = 1;  // in the order of ps.proto
  MarkMethodStreamed(kLaneIndex,
                     new grpc::internal::BidiStreamingHandler<RawService, grpc::ByteBuffer, grpc::ByteBuffer>(
                         [](RawService* service, grpc::ServerContext* context, LaneStream* stream) {
                           return service->RawLane(context, stream);
                         },
                         this));
}

std::unique_ptr<LaneCall> OpenLane(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context) {
  const grpc::internal::RpcMethod method(kLaneMethod, grpc::internal::RpcMethod::BIDI_STREAMING, channel);
  return std::unique_ptr<LaneCall>(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(channel.get(), method,
                                                                                            context));
}

}  // namespace regatta::wire
