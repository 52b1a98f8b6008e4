#include "client/lane.h"

#include "wire/transport.h"

namespace regatta::client {
namespace {

constexpr std::chrono::seconds kCloseTimeout(2);

absl::Status ReplyStatus(const ps::FrameHeader& header) {
  if (header.code() == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(header.code()), header.message());
}

bool IsPull(ps::Verb verb) { return verb == ps::PULL || verb == ps::PULL_DENSE; }
bool IsPush(ps::Verb verb) {
  return verb == ps::PUSH || verb == ps::PUSH_DENSE || verb == ps::ADD || verb == ps::ADD_DENSE;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> Lane::Open(const std::shared_ptr<grpc::Channel>& channel,
                                                 const ps::WorkerId& worker, int lane, const std::string& server,
                                                 LaneTraffic& traffic) {
  std::unique_ptr<Lane> opened(new Lane(server, traffic));
  opened->stream_ = wire::OpenLane(channel, &opened->context_);
  RETURN_IF_ERROR(opened->SayHello(worker, lane));
  opened->reader_ = std::thread([lane = opened.get()] { lane->ReadReplies(); });
  return opened;
}

absl::Status Lane::SayHello(const ps::WorkerId& worker, int lane) {
  ps::FrameHeader hello;
  hello.set_verb(ps::HELLO);
  hello.set_lane(static_cast<uint32_t>(lane));
  *hello.mutable_worker() = worker;
  grpc::ByteBuffer reply;
  if (stream_->Write(wire::FrameWriter(hello, 0).Finish()) && stream_->Read(&reply)) {
    wire::FrameReader frame(reply);
    RETURN_IF_ERROR(base::Annotate(frame.Open(), server_));
    return base::Annotate(ReplyStatus(frame.header()), server_);
  }
  return base::Annotate(wire::FromGrpc(stream_->Finish()), absl::StrCat(server_, " refuses a lane"));
}

Lane::~Lane() {
  if (!reader_.joinable()) {
    context_.TryCancel();
    return;
  }
  {
    base::MutexLock lock(write_mu_);
    stream_->WritesDone();
  }
  {
    base::MutexLock lock(mu_);
    const auto end = std::chrono::steady_clock::now() + kCloseTimeout;
    while (!reader_ended_ && std::chrono::steady_clock::now() < end)
      ended_.WaitFor(mu_, std::chrono::milliseconds(100));
    if (!reader_ended_) context_.TryCancel();
  }
  reader_.join();
}

void Lane::Send(ps::FrameHeader& header, size_t body_bytes, const std::function<void(wire::FrameWriter&)>& fill,
                Decode decode, Call& call) {
  bool written = false;
  absl::Status broken;
  {
    base::MutexLock write_lock(write_mu_);
    header.set_id(next_id_++);
    wire::FrameWriter writer(header, body_bytes);
    fill(writer);
    const grpc::ByteBuffer frame = writer.Finish();
    {
      base::MutexLock lock(mu_);
      broken = broken_;
      if (broken.ok())
        pending_.push_back({header.id(), header.verb(), std::chrono::steady_clock::now(), std::move(decode), &call});
    }
    if (broken.ok()) {
      if (IsPush(header.verb())) traffic_.pushes_in_flight.fetch_add(1, std::memory_order_relaxed);
      traffic_.bytes_out.Add(frame.Length());
      written = stream_->Write(frame, grpc::WriteOptions().set_write_through());
    }
  }
  if (!broken.ok()) call.Done(broken);
  if (broken.ok() && !written) context_.TryCancel();  // the reader fails what is pending
}

void Lane::ReadReplies() {
  grpc::ByteBuffer buffer;
  absl::Status status;
  while (status.ok() && stream_->Read(&buffer)) {
    traffic_.bytes_in.Add(buffer.Length());
    status = TakeReply(buffer);
    buffer.Clear();
  }
  if (!status.ok()) context_.TryCancel();
  const grpc::Status finish = stream_->Finish();
  if (status.ok()) {
    status = wire::FromGrpc(finish);
    if (status.ok()) status = absl::UnavailableError("the stream ended");
  }
  Break(base::Annotate(status, absl::StrCat(server_, " went away")));
}

absl::Status Lane::TakeReply(grpc::ByteBuffer& buffer) {
  wire::FrameReader frame(buffer);
  RETURN_IF_ERROR(frame.Open());
  Pending pending;
  {
    base::MutexLock lock(mu_);
    if (pending_.empty() || pending_.front().id != frame.header().id())
      return absl::InternalError(absl::StrCat("a reply to request ", frame.header().id(), ", which is not due"));
    pending = std::move(pending_.front());
    pending_.pop_front();
  }
  Note(pending, frame.header());
  absl::Status status = ReplyStatus(frame.header());
  if (status.ok() && pending.decode) status = pending.decode(frame);
  if (status.ok()) status = frame.ExpectEnd();
  pending.call->Done(base::Annotate(status, server_));
  return absl::OkStatus();
}

void Lane::Note(const Pending& request, const ps::FrameHeader& reply) {
  if (!IsPull(request.verb) && !IsPush(request.verb)) return;
  const auto nanos =
      static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - request.sent).count());
  if (IsPull(request.verb)) {
    traffic_.pull.Record(nanos);
    return;
  }
  traffic_.push.Record(nanos);
  traffic_.pushes_in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (request.verb == ps::PUSH && reply.count() > 0) traffic_.staleness.Record(reply.count() - 1);
}

void Lane::Break(const absl::Status& status) {
  std::deque<Pending> pending;
  {
    base::MutexLock lock(mu_);
    broken_ = status;
    pending.swap(pending_);
    reader_ended_ = true;
    ended_.NotifyAll();
  }
  for (const Pending& request : pending) request.call->Done(status);
}

}  // namespace regatta::client
