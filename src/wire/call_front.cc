#include "wire/call_front.h"

#include <glog/logging.h>
#include <grpcpp/alarm.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta::wire {
namespace {

constexpr int kCallSlots = 64;  // calls, and lanes, that can come before the front's thread has looked at one
constexpr int kLaneSlots = 16;
constexpr size_t kMemberThreads = 2;
constexpr size_t kRefused = 256;  // lanes that are told why; more are cancelled without a word
constexpr std::chrono::milliseconds kRefusalTimeout(100);
constexpr std::chrono::milliseconds kCloseTimeout(5'000);
constexpr std::chrono::milliseconds kFrontPoll(500);
constexpr std::chrono::milliseconds kBusy(5);
constexpr size_t kReplyBlock = 1 << 20;  // bytes of a reply that lie together

// For probes, which need no token. Watch is not served: clients are told, and ask Check.
constexpr char kHealthPath[] = "/grpc.health.v1.Health/Check";
constexpr size_t kEmptyName = 2;  // bytes of a request for the server as a whole, at most

grpc::Status Full(const char* what) {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED,
          absl::StrCat("this server has as many calls of ", what, " as it serves at once; try again later")};
}

int RankOf(const ps::WorkerId& worker) { return static_cast<int>(std::min<uint32_t>(worker.rank(), 1u << 30)); }

using Message = google::protobuf::MessageLite;

bool ReadMessage(grpc::ByteBuffer* in, Message* message) {
  grpc::ProtoBufferReader reader(in);
  return reader.status().ok() && message->ParseFromZeroCopyStream(&reader) && reader.status().ok();
}

// Reads the request and serves it. `worker` is who says that it asks.
template <typename Request, typename Reply>
grpc::Status ServeVerb(RawService& service, grpc::Status (RawService::*verb)(grpc::ServerContext*, Request*, Reply*),
                       grpc::ServerContext* context, grpc::ByteBuffer* in, std::unique_ptr<Message>* out, int* worker) {
  std::remove_const_t<Request> request;
  const bool read = ReadMessage(in, &request);
  in->Clear();  // the verb may wait for long
  if (!read) return {grpc::StatusCode::INVALID_ARGUMENT, "the request cannot be read"};
  if constexpr (requires { request.worker().rank(); }) *worker = RankOf(request.worker());
  auto reply = std::make_unique<Reply>();
  grpc::Status status = (service.*verb)(context, &request, reply.get());
  *out = std::move(reply);
  return status;
}

using Server = grpc::Status (*)(RawService&, grpc::ServerContext*, grpc::ByteBuffer*, std::unique_ptr<Message>*, int*);
template <auto verb>
grpc::Status ServeAs(RawService& service, grpc::ServerContext* context, grpc::ByteBuffer* in,
                     std::unique_ptr<Message>* out, int* worker) {
  return ServeVerb(service, verb, context, in, out, worker);
}

constexpr size_t kLargeRequest = 36 << 20, kSmallRequest = 128 << 10, kLargeReply = 64 << 10;
// HealthCheckResponse{status: SERVING}.
grpc::ByteBuffer Serving() {
  const grpc::Slice bytes("\x08\x01", 2);
  return grpc::ByteBuffer(&bytes, 1);
}

}  // namespace

// A row of the table of verbs.
struct CallFront::Verb {
  // Whether a call that is served shows that the peer is a worker, and which one.
  enum class Proof : uint8_t { kNone, kMember, kWorker };

  const char* name;
  Server serve;
  CallThreads CallFront::*threads;
  Proof proof;
  size_t most_bytes;  // of a request

  static const Verb kAll[];  // every unary verb of ps.proto
  // Null if there is none.
  static const Verb* At(std::string_view path);
};

const CallFront::Verb CallFront::Verb::kAll[] = {
    {"Connect", &ServeAs<&RawService::Connect>, &CallFront::connect_threads_, Proof::kMember, kLargeRequest},
    {"Gather", &ServeAs<&RawService::Gather>, &CallFront::gather_threads_, Proof::kWorker, kLargeRequest},
    {"Heartbeat", &ServeAs<&RawService::Heartbeat>, &CallFront::member_threads_, Proof::kWorker, kSmallRequest},
    {"Goodbye", &ServeAs<&RawService::Goodbye>, &CallFront::member_threads_, Proof::kNone, kSmallRequest},
    {"Status", &ServeAs<&RawService::Status>, &CallFront::status_threads_, Proof::kNone, kSmallRequest},
};

const CallFront::Verb* CallFront::Verb::At(std::string_view path) {
  constexpr std::string_view service = "/regatta.ps.ParameterServer/";
  if (!path.starts_with(service)) return nullptr;
  path.remove_prefix(service.size());
  for (const Verb& verb : kAll)
    if (path == verb.name) return &verb;
  return nullptr;
}

// A call that is not a lane's, from before it comes until it is over. Deletes itself.
class CallFront::ControlCall {
 public:
  explicit ControlCall(CallFront& front) : front_(front) {
    context_.AsyncNotifyWhenDone(&over_);
    front.generic_.RequestCall(&context_, &stream_, front.queue_.get(), front.queue_.get(), &step_);
  }
  ~ControlCall() {
    if (counted_) front_.connections_.EndCall(*connection_);
    if (replying_ > 0) front_.connections_.EndReply(*connection_, replying_);
    base::MutexLock lock(front_.mu_);
    if (--front_.calls_ == 0) front_.changed_.NotifyAll();
  }

  std::chrono::steady_clock::time_point since() const { return since_; }
  void Cancel() { context_.TryCancel(); }

 private:
  enum class State : uint8_t { kAwaited, kReading, kServed, kFinishing };
  struct Step final : Event {
    explicit Step(ControlCall& call) : call_(call) {}
    void Happen(bool ok) override { call_.Move(ok); }
    ControlCall& call_;
  };
  struct Over final : Event {
    explicit Over(ControlCall& call) : call_(call) {}
    void Happen(bool) override {
      call_.over_came_ = true;
      call_.DeleteIfDone();
    }
    ControlCall& call_;
  };

  void Move(bool ok) {
    switch (state_) {
      case State::kAwaited:
        if (!ok) return delete this;  // the server shuts down; `over_` never comes
        front_.AwaitCall();
        return Begin();
      case State::kReading:
        front_.unread_.erase(place_);
        if (large()) connection_->EndRequest();
        if (ok) connection_->Received(request_.Length());
        front_.connections_.EndRead(*connection_);
        if (ok) return Dispatch();
        if (!over_came_) return Refuse({grpc::StatusCode::INVALID_ARGUMENT, "the request cannot be read"});
        front_.Strike(connection_);
        state_ = State::kFinishing;
        finished_ = true;
        return DeleteIfDone();
      case State::kServed:
        if (served_.ok()) return Reply(reply_);
        state_ = State::kFinishing;
        return stream_.Finish(served_, &step_);
      case State::kFinishing:
        finished_ = true;
        return DeleteIfDone();
    }
  }
  void DeleteIfDone() {
    if (finished_ && over_came_) delete this;
  }

  bool large() const { return verb_ != nullptr && verb_->most_bytes > kSmallRequest; }

  void Begin() {
    connection_ = front_.ConnectionOf(context_);
    if (connection_ == nullptr) return Refuse(grpc::Status::CANCELLED);  // it was closed
    counted_ = front_.connections_.BeginCall(*connection_);
    const std::string& path = context_.method();
    verb_ = Verb::At(path);
    if (verb_ != nullptr) {
      if (grpc::Status refused = front_.service_.Admit(context_); !refused.ok()) return Refuse(refused);
      if (front_.limits_.tokens) front_.connections_.Join(*connection_);
    } else if (path != kHealthPath) {
      return Refuse({grpc::StatusCode::UNIMPLEMENTED, "this server has no such call"});
    }
    state_ = State::kReading;
    since_ = std::chrono::steady_clock::now();
    place_ = front_.unread_.insert(front_.unread_.end(), this);
    if (large()) front_.connections_.BeginRequest(*connection_);
    front_.connections_.BeginRead(*connection_);
    stream_.Read(&request_, &step_);
    if (front_.unread_.size() > front_.limits_.unread) front_.unread_.front()->Cancel();
  }

  void Dispatch() {
    if (verb_ == nullptr) {
      if (request_.Length() > kEmptyName)
        return Refuse({grpc::StatusCode::NOT_FOUND, "the health of the server is \"\"'s"});
      connection_->Served();
      return Reply(Serving());
    }
    if (request_.Length() > verb_->most_bytes)
      return Refuse({grpc::StatusCode::RESOURCE_EXHAUSTED,
                     absl::StrCat("a request of ", verb_->name, " has at most ", verb_->most_bytes, " bytes")});
    if (!(front_.*verb_->threads).Run([this] { Serve(); })) Refuse(Full(verb_->name));
  }

  // In a thread of the verb's. The front's thread answers: gRPC's operations belong to one thread.
  void Serve() {
    int worker = Connection::kUnnamed;
    std::unique_ptr<Message> reply;
    served_ = verb_->serve(front_.service_, &context_, &request_, &reply, &worker);
    connection_->Served();
    if (served_.ok() && verb_->proof != Verb::Proof::kNone)
      front_.connections_.Join(*connection_, verb_->proof == Verb::Proof::kWorker ? worker : Connection::kUnnamed);
    if (served_.ok()) served_ = Pack(*reply);
    state_ = State::kServed;
    wake_.Set(front_.queue_.get(), std::chrono::system_clock::now(), &step_);
  }

  grpc::Status Pack(const Message& reply) {
    const size_t bytes = reply.ByteSizeLong();
    if (bytes > kLargeReply) {
      if (!front_.connections_.BeginReply(*connection_, bytes))
        return {grpc::StatusCode::RESOURCE_EXHAUSTED, "earlier replies on this connection have not been read"};
      replying_ = bytes;
    }
    if (bytes == 0) {  // the writer has no block for nothing
      reply_ = grpc::ByteBuffer(nullptr, 0);
      return grpc::Status::OK;
    }
    grpc::ProtoBufferWriter writer(&reply_, static_cast<int>(std::min<size_t>(bytes, kReplyBlock)),
                                   static_cast<int>(bytes));
    if (!reply.SerializeToZeroCopyStream(&writer)) return {grpc::StatusCode::INTERNAL, "the reply cannot be packed"};
    return grpc::Status::OK;
  }

  void Reply(const grpc::ByteBuffer& reply) {
    state_ = State::kFinishing;
    stream_.WriteAndFinish(reply, grpc::WriteOptions(), grpc::Status::OK, &step_);
  }

  void Refuse(const grpc::Status& status) {
    front_.Strike(connection_);
    state_ = State::kFinishing;
    stream_.Finish(status, &step_);
  }

  CallFront& front_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  Step step_{*this};
  Over over_{*this};
  std::atomic<State> state_{State::kAwaited};
  bool finished_ = false, over_came_ = false;
  bool counted_ = false;                    // as a stranger's call
  uint64_t replying_ = 0;                   // bytes of a large reply that has not left
  const Verb* verb_ = nullptr;              // null: the health service
  std::shared_ptr<Connection> connection_;  // null: it was closed
  std::chrono::steady_clock::time_point since_;
  std::list<ControlCall*>::iterator place_;  // in unread_
  grpc::ByteBuffer request_, reply_;
  grpc::Status served_;
  grpc::Alarm wake_;  // of the front's thread: it is served
};

// A lane that may come. Deletes itself.
class CallFront::LaneSlot final : public Event {
 public:
  explicit LaneSlot(CallFront& front) : front_(front) {
    front.lane_method_.Request(&stream_->context_, &stream_->stream_, &stream_->queue_, front.queue_.get(), this);
  }
  void Happen(bool ok) override {
    if (ok) {
      front_.AwaitLane();
      front_.Serve(std::move(stream_));
    } else {
      stream_->Abandon();
    }
    CallFront& front = front_;
    delete this;
    base::MutexLock lock(front.mu_);
    if (--front.calls_ == 0) front.changed_.NotifyAll();
  }

 private:
  CallFront& front_;
  std::unique_ptr<LaneStream> stream_ = std::make_unique<LaneStream>();
};

CallFront::CallFront(RawService& service, Connections& connections, const FrontLimits& limits)
    : service_(service),
      connections_(connections),
      limits_(limits),
      lane_threads_(limits.lanes, 0),
      gather_threads_(limits.gathers, 0),
      connect_threads_(limits.connects, limits.queued),
      member_threads_(kMemberThreads, limits.queued),
      status_threads_(1, limits.queued),
      refusals_(1, kRefused) {
  const auto* verbs = ps::StatusRequest::descriptor()->file()->service(0);
  CHECK_EQ(static_cast<int>(std::size(Verb::kAll)) + 1, verbs->method_count()) << "a verb is not served";
}

CallFront::~CallFront() {
  if (loop_.joinable()) Stop();
}

void CallFront::Register(grpc::ServerBuilder& builder) {
  builder.RegisterService(&lane_method_);
  builder.RegisterAsyncGenericService(&generic_);
  queue_ = builder.AddCompletionQueue();
}

void CallFront::Start() {
  for (int i = 0; i < kCallSlots; ++i) AwaitCall();
  for (int i = 0; i < kLaneSlots; ++i) AwaitLane();
  loop_ = std::thread([this] { Loop(); });
}

void CallFront::Stop() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
  }
  lane_threads_.Stop();
  gather_threads_.Stop();
  connect_threads_.Stop();
  member_threads_.Stop();
  status_threads_.Stop();
  refusals_.Stop();
  {
    base::MutexLock lock(mu_);
    while (calls_ > 0) changed_.Wait(mu_);
  }
  queue_->Shutdown();
  loop_.join();
}

void CallFront::Loop() {
  auto looked = std::chrono::steady_clock::now();
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    auto next = queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME));
    if (next == grpc::CompletionQueue::TIMEOUT) {
      waits_ = true;
      next = queue_->AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kFrontPoll);
      drained_ = std::chrono::steady_clock::now();
      waits_ = false;
    }
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) static_cast<Event*>(tag)->Happen(ok);
    const auto now = std::chrono::steady_clock::now();
    if (now - looked < kFrontPoll) continue;
    looked = now;
    CancelSlow();
  }
}

bool CallFront::Busy() const { return !waits_ && std::chrono::steady_clock::now() - drained_.load() > kBusy; }

void CallFront::CancelSlow() {
  const auto now = std::chrono::steady_clock::now();
  for (ControlCall* const call : unread_) {
    if (now - call->since() < limits_.request_timeout) return;
    call->Cancel();
  }
}

void CallFront::AwaitCall() {
  {
    base::MutexLock lock(mu_);
    if (stopping_) return;
    ++calls_;
  }
  new ControlCall(*this);
}

void CallFront::AwaitLane() {
  {
    base::MutexLock lock(mu_);
    if (stopping_) return;
    ++calls_;
  }
  new LaneSlot(*this);
}

std::shared_ptr<Connection> CallFront::ConnectionOf(const grpc::ServerContext& context) const {
  return connections_.Find(context.peer());
}

void CallFront::Strike(const std::shared_ptr<Connection>& connection) {
  if (connection != nullptr) connections_.Strike(*connection);
}

void CallFront::Serve(std::unique_ptr<LaneStream> lane) {
  lane->connections_ = &connections_;
  lane->connection_ = ConnectionOf(lane->context_);
  if (lane->connection_ == nullptr || lane->Cancelled()) return Refuse(std::move(lane), grpc::Status::CANCELLED);
  if (grpc::Status refused = service_.Admit(lane->context_); !refused.ok()) return Refuse(std::move(lane), refused);
  if (limits_.tokens) connections_.Join(*lane->connection_);
  lane->BeginReading();
  lane->greeting_ = lane->connection_->MayGreet();
  if (!lane->greeting_)
    return Refuse(std::move(lane), {grpc::StatusCode::RESOURCE_EXHAUSTED,
                                    "lanes of this connection have been opened and do not say HELLO"});
  LaneStream* const served = lane.release();
  const bool runs = lane_threads_.Run([this, served] {
    const std::unique_ptr<LaneStream> mine(served);
    const grpc::Status status = service_.RawLane(&mine->context_, mine.get());
    if (!mine->joined()) Strike(mine->connection_);
    mine->Close(status, kCloseTimeout);
  });
  if (!runs) Refuse(std::unique_ptr<LaneStream>(served), Full("lanes"));
}

void CallFront::Refuse(std::unique_ptr<LaneStream> lane, grpc::Status status) {
  Strike(lane->connection_);
  LaneStream* const refused = lane.release();
  const bool told = refusals_.Run([refused, status = std::move(status)] {
    refused->Close(status, kRefusalTimeout);
    delete refused;
  });
  if (told) return;
  refused->context_.TryCancel();
  refused->Close(grpc::Status::CANCELLED, std::chrono::milliseconds(0));
  delete refused;
}

}  // namespace regatta::wire
