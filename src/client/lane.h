// One lane to one server: a stream with a thread that reads its replies, in the order of the requests. A stream that
// breaks is opened again and what was not answered is sent again, with the same numbers: the server does nothing twice.
// Thread-safety: Send is concurrent. A lane that is given up fails every request from then on, naming the server.
#pragma once

#include <grpcpp/channel.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "client/call.h"
#include "client/outage_log.h"
#include "metrics/counter.h"
#include "metrics/histogram.h"
#include "wire/frame.h"
#include "wire/frame_seal.h"
#include "wire/lane_method.h"

namespace regatta::client {

// What the lanes to one server have carried. Concurrent.
struct LaneTraffic {
  metrics::Counter bytes_out;
  metrics::Counter bytes_in;
  metrics::Counter reconnects;
  metrics::Histogram pull;                   // nanoseconds from the request to its reply
  metrics::Histogram push;                   // the same
  metrics::Histogram staleness;              // of the pushes, as the server measured it: updates since the step's pull
  std::atomic<int64_t> pushes_in_flight{0};  // not acknowledged yet
};

struct LaneOptions {
  std::shared_ptr<grpc::Channel> channel;
  ps::WorkerId worker;
  int index = 0;
  std::string server;                         // what errors call it
  bool durable = false;                       // a server that was killed may come back with all that it acknowledged
  std::chrono::duration<double> timeout{10};  // with a connection that broke
  OutageLog* outage_log = nullptr;            // of the server; outlives the lane
  std::function<bool()> cancelled = [] { return false; };  // asked while it waits for its server
  std::function<bool()> given_up = [] { return false; };   // asked now and then: the lane is to fail its requests
};

class Lane {
 public:
  // Reads the body of a reply; runs on the lane's thread.
  using Decode = std::function<absl::Status(wire::FrameReader&)>;

  // A server that goes away meanwhile is waited for, as later.
  static absl::StatusOr<std::unique_ptr<Lane>> Open(const LaneOptions& options, LaneTraffic& traffic);
  ~Lane();

  // header.id is set here. `fill` appends body_bytes to the frame. call.Done when the reply is decoded or failed; the
  // caller has called Expect.
  void Send(ps::FrameHeader& header, size_t body_bytes, const std::function<void(wire::FrameWriter&)>& fill,
            Decode decode, Call& call);
  // Opens the stream again where no answer has come for a long time: the network may have dropped a request. Ends
  // the lane that is given up. Called now and then.
  void LookAfter();
  // Held over the frames of a push, which follow one another.
  base::Mutex& push_order() { return push_order_; }

 private:
  struct Pending {
    uint64_t id = 0;
    ps::Verb verb = ps::NONE;
    bool more = false;  // of a push whose last frame is still to come
    std::chrono::steady_clock::time_point sent;
    grpc::ByteBuffer frame;
    Decode decode;
    Call* call = nullptr;  // null: it has been answered, and goes again only with the rest of its push
  };
  Lane(const LaneOptions& options, LaneTraffic& traffic) : options_(options), traffic_(traffic) {}
  absl::Status OpenStream();
  absl::Status SayHello();
  void Run();
  absl::Status ReadReplies();
  absl::Status Reconnect(const absl::Status& why);
  void SendAgain();
  absl::Status TakeReply(grpc::ByteBuffer& buffer);
  void Note(const Pending& request, const ps::FrameHeader& reply);
  void Break(const absl::Status& status);
  bool closing();

  const LaneOptions options_;
  LaneTraffic& traffic_;
  std::thread reader_;
  std::thread sender_;  // of what was not answered, after a reconnection; the reader's
  base::Mutex push_order_;

  base::Mutex write_mu_;  // orders pending_ as the stream
  // These change under write_mu_ and mu_ by the reader, which reads them too.
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<wire::LaneCall> stream_;
  wire::FrameSeal out_;  // as stream_
  wire::FrameSeal in_;   // the reader's
  bool connected_ ABSL_GUARDED_BY(write_mu_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(write_mu_) = 1;

  base::Mutex mu_;
  base::CondVar changed_;
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);
  std::deque<Pending> held_ ABSL_GUARDED_BY(mu_);  // answered frames of a push that is not whole yet
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point heard_ ABSL_GUARDED_BY(mu_);  // the last answer, or the stream's beginning
  bool reader_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::client
