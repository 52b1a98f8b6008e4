// What a server does with calls: the verbs of ps.proto, as call_front.h asks for them. A lane's frames are bytes
// (grpc::ByteBuffer), so that wire/frame.h reads and writes them without a copy.
// Thread-safety: a service's methods are called concurrently; a LaneStream belongs to the thread that serves the lane.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <memory>

#include "wire/connections.h"
#include "wire/ps.grpc.pb.h"

namespace regatta::wire {

// The server's end of a lane. It has a queue of its own: the thread that waits for its frames polls for them.
class LaneStream {
 public:
  LaneStream() { context_.AsyncNotifyWhenDone(&over_); }
  LaneStream(const LaneStream&) = delete;
  LaneStream& operator=(const LaneStream&) = delete;

  grpc::ServerContext& context() { return context_; }
  // False when the peer sends no more, or the call is over.
  bool Read(grpc::ByteBuffer* frame);
  bool Write(const grpc::ByteBuffer& frame);
  // Whether the call is over. Between reads and writes.
  bool Cancelled();
  // The HELLO of a worker was accepted, who has so many sparse lanes here.
  void Join(int worker, int lanes);
  bool joined() const { return joined_; }

 private:
  friend class CallFront;
  // The operation that was begun has ended, well.
  bool Await();
  // Ends the call: the peer has `timeout` to take the status. Afterwards the stream may be deleted.
  void Close(const grpc::Status& status, std::chrono::milliseconds timeout);
  void EndGreeting();
  void BeginReading();
  // Of a call that never came.
  void Abandon();
  void Take(void* tag) { over_came_ |= tag == &over_; }

  grpc::ServerContext context_;
  grpc::CompletionQueue queue_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  Connections* connections_ = nullptr;
  std::shared_ptr<Connection> connection_;  // null: it is gone
  char operation_ = 0, over_ = 0;           // tags
  bool over_came_ = false;
  bool greeting_ = false;  // counted as such
  bool reading_ = false;   // the same
  bool joined_ = false;
};

class RawService {
 public:
  virtual ~RawService() = default;

  // Asked of every call of ps.proto's verbs before a byte of it is read. Not OK: it goes no further. Returns at once.
  virtual grpc::Status Admit(const grpc::ServerContext& context) = 0;

  // May wait for others.
  virtual grpc::Status Connect(grpc::ServerContext* context, const ps::ConnectRequest* request,
                               ps::ConnectReply* reply) = 0;
  // May take the payload out of the request.
  virtual grpc::Status Gather(grpc::ServerContext* context, ps::GatherRequest* request, ps::GatherReply* reply) = 0;
  // Until the lane ends.
  virtual grpc::Status RawLane(grpc::ServerContext* context, LaneStream* stream) = 0;

  // Wait for nobody.
  virtual grpc::Status Heartbeat(grpc::ServerContext* context, const ps::HeartbeatRequest* request,
                                 ps::HeartbeatReply* reply) = 0;
  virtual grpc::Status Goodbye(grpc::ServerContext* context, const ps::GoodbyeRequest* request,
                               ps::GoodbyeReply* reply) = 0;
  virtual grpc::Status Status(grpc::ServerContext* context, const ps::StatusRequest* request,
                              ps::StatusReply* reply) = 0;
};

}  // namespace regatta::wire
