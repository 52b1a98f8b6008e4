// Both ends of the verb Lane, whose frames are bytes (grpc::ByteBuffer) and not messages, so that wire/frame.h reads
// and writes them without a copy. This is the only component that uses gRPC's internal headers. Reason: gRPC's public
// ways to a stream of bytes do not fit. AsyncGenericService chooses the queue of a call before it knows the verb, so
// that every stranger's call would get a queue of its own; the generated WithRawMethod_Lane also registers the other
// verbs with the synchronous server, which call_front.h exists to avoid; GenericStub has no blocking reads. The headers
// exist under these names from gRPC 1.51 on. Thread-safety: LaneMethod belongs to the thread that serves its queue;
// OpenLane is concurrent.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>

namespace regatta::wire {

using LaneCall = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

// A worker's end.
std::unique_ptr<LaneCall> OpenLane(const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext* context);

// The server's end: a service with this one verb.
class LaneMethod final : public grpc::Service {
 public:
  LaneMethod();
  // `tag` comes to `arrivals` when a call has come; its operations end in `operations`.
  void Request(grpc::ServerContext* context, grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>* stream,
               grpc::CompletionQueue* operations, grpc::ServerCompletionQueue* arrivals, void* tag);
};

}  // namespace regatta::wire
