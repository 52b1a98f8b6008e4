#include "wire/raw_service.h"

#include <glog/logging.h>
#include <grpcpp/impl/codegen/client_callback.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>

namespace regatta::wire {

// MarkMethodStreamed swaps the handler of a method that the generated constructor has added. A unary verb becomes a
// stream of one message each way, which is the same on the wire.
template <typename Request, typename Reply>
int RawService::GuardVerb(int index, grpc::Status (ps::ParameterServer::Service::*verb)(grpc::ServerContext*,
                                                                                        const Request*, Reply*)) {
  MarkMethodStreamed(index, new grpc::internal::StreamedUnaryHandler<Request, Reply>(
                                [this, verb](grpc::ServerContext* context,
                                             grpc::ServerUnaryStreamer<Request, Reply>* stream) -> grpc::Status {
                                  if (grpc::Status refused = guard_(*context); !refused.ok()) return refused;
                                  Request request;
                                  Reply reply;
                                  if (!stream->Read(&request))
                                    return {grpc::StatusCode::INVALID_ARGUMENT, "the request cannot be read"};
                                  grpc::Status status = (this->*verb)(context, &request, &reply);
                                  if (status.ok()) stream->Write(reply);
                                  return status;
                                }));
  return 1;
}

RawService::RawService(Guard guard) : guard_(std::move(guard)) {
  using Service = ps::ParameterServer::Service;
  int guarded = 0;
  guarded += GuardVerb(0, &Service::Connect);  // in the order of ps.proto
  MarkMethodStreamed(1, new grpc::internal::BidiStreamingHandler<RawService, grpc::ByteBuffer, grpc::ByteBuffer>(
                            [](RawService* service, grpc::ServerContext* context, LaneStream* stream) -> grpc::Status {
                              if (grpc::Status refused = service->guard_(*context); !refused.ok()) return refused;
                              return service->RawLane(context, stream);
                            },
                            this));
  guarded += 1;
  guarded += GuardVerb(2, &Service::Gather);
  guarded += GuardVerb(3, &Service::Heartbeat);
  guarded += GuardVerb(4, &Service::Goodbye);
  guarded += GuardVerb(5, &Service::Status);
  CHECK_EQ(guarded, ps::StatusRequest::descriptor()->file()->service(0)->method_count()) << "a verb has no guard";
}

std::unique_ptr<LaneCall> OpenLane(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context) {
  const grpc::internal::RpcMethod method(kLaneMethod, grpc::internal::RpcMethod::BIDI_STREAMING, channel);
  return std::unique_ptr<LaneCall>(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(channel.get(), method,
                                                                                            context));
}

}  // namespace regatta::wire
