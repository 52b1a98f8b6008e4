#include "wire/lane_method.h"

#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/impl/rpc_service_method.h>

namespace regatta::wire {
namespace {
constexpr char kLaneMethod[] = "/regatta.ps.ParameterServer/Lane";
}  // namespace

std::unique_ptr<LaneCall> OpenLane(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context) {
  const grpc::internal::RpcMethod method(kLaneMethod, grpc::internal::RpcMethod::BIDI_STREAMING, channel);
  return std::unique_ptr<LaneCall>(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(channel.get(), method,
                                                                                            context));
}

LaneMethod::LaneMethod() {
  AddMethod(new grpc::internal::RpcServiceMethod(kLaneMethod, grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodRaw(0);
}

void LaneMethod::Request(grpc::ServerContext* context,
                         grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>* stream,
                         grpc::CompletionQueue* operations, grpc::ServerCompletionQueue* arrivals, void* tag) {
  RequestAsyncBidiStreaming(0, context, stream, operations, arrivals, tag);
}

}  // namespace regatta::wire
