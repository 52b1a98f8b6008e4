#include "client/lane.h"

#include <glog/logging.h>

#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "client/grpc_text.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kCloseTimeout(2);
constexpr std::chrono::milliseconds kRetry(100);
constexpr std::chrono::milliseconds kRest(20);  // where the server answers, and refuses
constexpr std::chrono::seconds kNoAnswer(30);
constexpr int kRefusals = 3;  // that are believed: one may be what the network made of a welcome

absl::Status ReplyStatus(const ps::FrameHeader& header) {
  if (header.code() == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(header.code()), base::Printable(header.message()));
}

bool IsPull(ps::Verb verb) { return verb == ps::PULL || verb == ps::PULL_DENSE; }
bool IsPush(ps::Verb verb) {
  switch (verb) {
    case ps::PUSH:
    case ps::PUSH_DENSE:
    case ps::ADD:
    case ps::ADD_DENSE:
    case ps::COMBINE:
    case ps::COMBINE_DENSE:
      return true;
    default:
      return false;
  }
}

// Whether a stream's end speaks of the connection, rather than of a server that refuses.
bool IsConnection(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> Lane::Open(const LaneOptions& options, LaneTraffic& traffic) {
  std::unique_ptr<Lane> opened(new Lane(options, traffic));
  absl::Status status = opened->OpenStream();
  if (IsConnection(status) || absl::IsResourceExhausted(status)) status = opened->Reconnect(status);
  RETURN_IF_ERROR(base::Annotate(status, absl::StrCat(options.server, " refuses a lane")));
  {
    base::MutexLock lock(opened->write_mu_);
    opened->connected_ = true;
  }
  opened->reader_ = std::thread([lane = opened.get()] { lane->Run(); });
  return opened;
}

absl::Status Lane::OpenStream() {
  auto context = std::make_unique<grpc::ClientContext>();
  auto stream = wire::OpenLane(options_.channel, context.get());
  {
    base::MutexLock write_lock(write_mu_);
    base::MutexLock lock(mu_);
    stream_ = std::move(stream);
    context_ = std::move(context);
    out_ = in_ = {};
    heard_ = Clock::now();
  }
  return SayHello();
}

absl::Status Lane::SayHello() {
  ps::FrameHeader hello;
  hello.set_verb(ps::HELLO);
  hello.set_lane(static_cast<uint32_t>(options_.index));
  *hello.mutable_worker() = options_.worker;
  grpc::ByteBuffer reply;
  if (stream_->Write(out_.Put(wire::FrameWriter(hello, 0).Finish())) && stream_->Read(&reply)) {
    wire::FrameReader frame(reply);
    absl::Status status = in_.Check(reply);
    if (status.ok()) status = frame.Open();
    if (status.ok()) status = ReplyStatus(frame.header());
    if (status.ok()) return status;
    context_->TryCancel();
    stream_->Finish();
    return status;
  }
  const absl::Status status = wire::FromGrpc(stream_->Finish());
  if (status.code() == absl::StatusCode::kInternal) return absl::UnavailableError(status.message());  // HTTP/2's
  return status.ok() ? absl::UnavailableError("the stream ended") : status;
}

Lane::~Lane() {
  if (!reader_.joinable()) {
    if (context_ != nullptr) context_->TryCancel();
    return;
  }
  {
    base::MutexLock lock(mu_);
    closing_ = true;
    changed_.NotifyAll();
  }
  {
    base::MutexLock lock(write_mu_);
    if (connected_) stream_->WritesDone();
  }
  const auto end = Clock::now() + kCloseTimeout;
  bool ended = false;
  while (!ended && Clock::now() < end) {
    base::MutexLock lock(mu_);
    if (!reader_ended_) changed_.WaitFor(mu_, std::chrono::milliseconds(100));
    ended = reader_ended_;
  }
  if (!ended) {
    base::MutexLock lock(write_mu_);
    context_->TryCancel();
  }
  reader_.join();
}

bool Lane::closing() {
  base::MutexLock lock(mu_);
  return closing_;
}

void Lane::Send(ps::FrameHeader& header, size_t body_bytes, const std::function<void(wire::FrameWriter&)>& fill,
                Decode decode, Call& call) {
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
        pending_.push_back({header.id(), header.verb(), header.more(), Clock::now(), frame, std::move(decode), &call});
    }
    if (broken.ok()) {
      if (IsPush(header.verb())) traffic_.pushes_in_flight.fetch_add(1, std::memory_order_relaxed);
      traffic_.bytes_out.Add(frame.Length());
      if (connected_ && !stream_->Write(out_.Put(frame), grpc::WriteOptions().set_write_through())) {
        connected_ = false;
        context_->TryCancel();  // the reader learns it, and sends what is pending again
      }
    }
  }
  if (!broken.ok()) call.Done(broken);
}

void Lane::Run() {
  absl::Status status;
  while (true) {
    status = ReadReplies();
    if (sender_.joinable()) sender_.join();
    if (!IsConnection(status) || closing()) break;
    if (options_.given_up()) {
      Break(absl::CancelledError(absl::StrCat("stopped while waiting for ", options_.server)));
      return;
    }
    status = Reconnect(status);
    if (!status.ok()) break;
    traffic_.reconnects.Add();
    sender_ = std::thread([this] { SendAgain(); });
  }
  Break(base::Annotate(status, absl::StrCat(options_.server, " went away")));
}

// Why the stream ended; never OK.
absl::Status Lane::ReadReplies() {
  grpc::ByteBuffer buffer;
  absl::Status status;
  while (status.ok() && stream_->Read(&buffer)) {
    traffic_.bytes_in.Add(buffer.Length());
    status = in_.Check(buffer);
    if (status.ok()) status = TakeReply(buffer);
    buffer.Clear();
  }
  {
    base::MutexLock lock(write_mu_);
    connected_ = false;
  }
  if (!status.ok()) context_->TryCancel();
  const absl::Status finish = wire::FromGrpc(stream_->Finish());
  if (!status.ok()) return status;
  // A server that has welcomed a lane refuses requests, not the stream: whatever ends it is the connection's fault.
  return absl::UnavailableError(finish.ok() ? "the stream ended" : finish.message());
}

// A server without a log that nobody listens for any more has lost its tables: there is nothing to wait for.
absl::Status Lane::Reconnect(const absl::Status& why) {
  const auto start = Clock::now();
  int refusals = 0;
  while (true) {
    const absl::Status opened = OpenStream();
    if (opened.ok()) break;
    // Exhausted: the server has not noticed yet that the lane's old streams are gone.
    if (!IsConnection(opened) && !absl::IsResourceExhausted(opened) && ++refusals == kRefusals) return opened;
    if (!options_.durable && SaysRefused(opened)) return why;
    const std::chrono::duration<double> waited = Clock::now() - start;
    if (waited > options_.timeout)
      return absl::UnavailableError(
          absl::StrFormat("%s; it did not come back within %.0f s", why.message(), waited.count()));
    options_.outage_log->LogIfDue(waited, options_.timeout);
    if (closing() || options_.cancelled())
      return absl::CancelledError("stopped while waiting for a server to come back");
    // A call on a channel that has failed ends at once, and gRPC connects only while somebody waits.
    options_.channel->WaitForConnected(std::chrono::system_clock::now() + kRetry);
    base::MutexLock lock(mu_);
    changed_.WaitFor(mu_, kRest);
  }
  base::MutexLock lock(mu_);
  while (!held_.empty()) {
    pending_.push_front(std::move(held_.back()));
    held_.pop_back();
  }
  return absl::OkStatus();
}

// On a thread of its own: the server may wait for its replies to be read before it reads on.
void Lane::SendAgain() {
  base::MutexLock write_lock(write_mu_);
  std::deque<grpc::ByteBuffer> frames;
  {
    base::MutexLock lock(mu_);
    for (const Pending& request : pending_) frames.push_back(request.frame);
  }
  connected_ = true;
  for (const grpc::ByteBuffer& frame : frames) {
    traffic_.bytes_out.Add(frame.Length());
    if (stream_->Write(out_.Put(frame))) continue;
    connected_ = false;
    context_->TryCancel();
    return;
  }
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
    heard_ = Clock::now();
  }
  absl::Status status = ReplyStatus(frame.header());
  if (pending.call != nullptr) {
    Note(pending, frame.header());
    if (status.ok() && pending.decode) status = pending.decode(frame);
    if (status.ok()) status = frame.ExpectEnd();
    std::exchange(pending.call, nullptr)->Done(base::Annotate(status, options_.server));
  }
  if (pending.verb != ps::PUSH) return absl::OkStatus();
  base::MutexLock lock(mu_);
  if (pending.more && status.ok()) {
    held_.push_back(std::move(pending));
  } else {
    held_.clear();
  }
  return absl::OkStatus();
}

// Without write_mu_, which is held by whom the server does not read.
void Lane::LookAfter() {
  const bool given_up = options_.given_up();
  base::MutexLock lock(mu_);
  const auto now = Clock::now();
  if (given_up) context_->TryCancel();
  if (pending_.empty() || now - pending_.front().sent < kNoAnswer || now - heard_ < kNoAnswer) return;
  context_->TryCancel();
}

void Lane::Note(const Pending& request, const ps::FrameHeader& reply) {
  if (!IsPull(request.verb) && !IsPush(request.verb)) return;
  const auto nanos = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - request.sent).count());
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
    held_.clear();
    reader_ended_ = true;
    changed_.NotifyAll();
  }
  for (const Pending& request : pending)
    if (request.call != nullptr) request.call->Done(status);
}

}  // namespace regatta::client
