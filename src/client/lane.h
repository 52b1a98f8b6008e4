// One lane to one server: a stream with a thread that reads its replies, in the order of the requests.
// Thread-safety: Send is concurrent. A lane that broke fails every request from then on, naming the server.
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
#include "metrics/counter.h"
#include "metrics/histogram.h"
#include "wire/frame.h"
#include "wire/raw_service.h"

namespace regatta::client {

// What the lanes to one server have carried. Concurrent.
struct LaneTraffic {
  metrics::Counter bytes_out;
  metrics::Counter bytes_in;
  metrics::Histogram pull;                   // nanoseconds from the request to its reply
  metrics::Histogram push;                   // the same
  metrics::Histogram staleness;              // of the pushes, as the server measured it: updates since the step's pull
  std::atomic<int64_t> pushes_in_flight{0};  // not acknowledged yet
};

class Lane {
 public:
  // Reads the body of a reply; runs on the lane's thread.
  using Decode = std::function<absl::Status(wire::FrameReader&)>;

  // `server` is what errors call it.
  static absl::StatusOr<std::unique_ptr<Lane>> Open(const std::shared_ptr<grpc::Channel>& channel,
                                                    const ps::WorkerId& worker, int lane, const std::string& server,
                                                    LaneTraffic& traffic);
  ~Lane();

  // header.id is set here. `fill` appends body_bytes to the frame. call.Done when the reply is decoded or failed; the
  // caller has called Expect.
  void Send(ps::FrameHeader& header, size_t body_bytes, const std::function<void(wire::FrameWriter&)>& fill,
            Decode decode, Call& call);

 private:
  struct Pending {
    uint64_t id;
    ps::Verb verb;
    std::chrono::steady_clock::time_point sent;
    Decode decode;
    Call* call;
  };
  Lane(const std::string& server, LaneTraffic& traffic) : server_(server), traffic_(traffic) {}
  absl::Status SayHello(const ps::WorkerId& worker, int lane);
  void ReadReplies();
  absl::Status TakeReply(grpc::ByteBuffer& buffer);
  void Note(const Pending& request, const ps::FrameHeader& reply);
  void Break(const absl::Status& status);

  const std::string server_;
  LaneTraffic& traffic_;
  grpc::ClientContext context_;
  std::unique_ptr<wire::LaneCall> stream_;
  std::thread reader_;

  base::Mutex write_mu_;  // orders pending_ as the stream
  base::Mutex mu_;
  base::CondVar ended_;
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  bool reader_ended_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(write_mu_) = 1;
};

}  // namespace regatta::client
