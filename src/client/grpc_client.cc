#include "client/grpc_client.h"

#include <glog/logging.h>
#include <grpcpp/completion_queue.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/failpoint.h"
#include "base/job_policy.h"
#include "base/mode.h"
#include "base/printable.h"
#include "checkpoint/schema_json.h"
#include "client/grpc_text.h"
#include "table/accessor/accessor_factory.h"
#include "table/dense_table.h"
#include "wire/certificate.h"
#include "wire/lane_progress.h"
#include "wire/packing.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

constexpr std::chrono::milliseconds kBeat(2000);
constexpr std::chrono::milliseconds kPoll(200);
constexpr std::chrono::milliseconds kInsistRest(20);
constexpr std::chrono::milliseconds kJoinRest(100);
constexpr std::chrono::seconds kQuietWait(2), kLogWaitEvery(10);  // to be let into the job
constexpr std::chrono::seconds kFarewell(60);                     // for a server that is away: it would miss us
constexpr size_t kPushBytes = 16 << 20;                           // of a frame; larger requests are split
constexpr uint32_t kFrameKeys = wire::kMaxKeysAFrame / 2;

ps::Kind ToWire(base::StepKind kind) { return kind == base::StepKind::kTrain ? ps::TRAIN : ps::INFER; }

// Keys [begin, end) of entry `index` of a request's tables.
struct Piece {
  size_t index = 0;
  size_t begin = 0;
  size_t end = 0;
};

// What of a lane's keys goes into which frame: `bytes[i]` is what a key of entry i costs, `most` what a frame may.
std::vector<std::vector<Piece>> CutFrames(std::span<const Piece> pieces, std::span<const size_t> bytes, size_t most) {
  std::vector<std::vector<Piece>> frames(1);
  size_t keys_left = kFrameKeys, bytes_left = most;
  for (Piece piece : pieces) {
    const size_t cost = std::max<size_t>(bytes[piece.index], 1);
    do {
      const size_t room = std::max<size_t>(std::min(keys_left, bytes_left / cost), 1);
      const size_t end = std::min(piece.end, piece.begin + room);
      frames.back().push_back({piece.index, piece.begin, end});
      const size_t keys = end - piece.begin;
      keys_left -= std::min(keys_left, keys);
      bytes_left -= std::min(bytes_left, keys * cost);
      piece.begin = end;
      if (piece.begin == piece.end) break;
      frames.emplace_back();
      keys_left = kFrameKeys;
      bytes_left = most;
    } while (true);
  }
  return frames;
}

// Tells that others are waited for, ever more seldom. Who they are the first server knows, and says.
class GatherWait {
 public:
  void LogIfDue(const std::string& name) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start_;
    if (waited < next_) return;
    next_ *= 2;
    LOG(INFO) << absl::StrFormat("'%s': waiting %.0f s for other workers; the log of server 0 says for whom", name,
                                 waited.count());
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::duration<double> next_{30};
};

template <typename Tables, typename KeysOf>
std::vector<Piece> PiecesOfLane(const Tables& tables, const wire::Range& shards, const KeysOf& keys_of) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < tables.size(); ++i) {
    const base::TableKeys& keys = keys_of(tables[i]);
    pieces.push_back(
        {i, keys.shard_begin[static_cast<size_t>(shards.begin)], keys.shard_begin[static_cast<size_t>(shards.end)]});
  }
  return pieces;
}

ps::FrameHeader MarkOf(ps::Verb verb, const StepTag& tag) {
  ps::FrameHeader header;
  header.set_verb(verb);
  header.set_pass(tag.pass);
  header.set_step(tag.step);
  return header;
}

ps::FrameHeader ChangeOf(ps::Verb verb, const Rounds& rounds) {
  ps::FrameHeader header;
  header.set_verb(verb);
  header.set_pass(rounds.pass);
  header.set_first_round(rounds.first);
  header.set_last_round(rounds.last);
  return header;
}

std::span<const base::Key> KeysOf(const base::TableKeys& keys, const Piece& piece) {
  return keys.keys.subspan(piece.begin, piece.end - piece.begin);
}

// Returns the bytes that the section's keys will take.
size_t AddSection(ps::FrameHeader& header, const base::TableKeys& keys, const Piece& piece, int width) {
  const std::span<const base::Key> part = KeysOf(keys, piece);
  const size_t key_bytes = wire::KeyBytes(part);
  ps::Section* section = header.add_sections();
  section->set_table(static_cast<uint32_t>(keys.table));
  section->set_keys(static_cast<uint32_t>(part.size()));
  section->set_width(static_cast<uint32_t>(width));
  section->set_key_bytes(static_cast<uint32_t>(key_bytes));
  return part.size() * key_bytes;
}

void AppendKeys(wire::FrameWriter& writer, const ps::FrameHeader& header, size_t section, const base::TableKeys& keys,
                const Piece& piece) {
  wire::AppendKeys(writer, KeysOf(keys, piece), header.sections(static_cast<int>(section)).key_bytes());
}

// Where a worker may end when some lanes have its push and others have not.
bool MaySend(Call& call) {
  const absl::Status status = base::Failpoint("push.lane");
  if (status.ok()) return true;
  call.Expect(1);
  call.Done(status);
  return false;
}

std::string Describe(const ps::LoadedSave& save) {
  if (save.identity() == 0) return "no save";
  return absl::StrFormat("a save of epoch %d, step %d (%016x)", save.epochs(), save.steps(), save.identity());
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcClient>> GrpcClient::Connect(const ClientOptions& options) {
  if (options.credentials != nullptr) RETURN_IF_ERROR(wire::CheckCertificate(*options.credentials));
  std::unique_ptr<GrpcClient> client(new GrpcClient(options));
  RETURN_IF_ERROR(client->Prepare());
  RETURN_IF_ERROR(AwaitServers(client->control_, options.wait_timeout, options.cancelled, options.credentials.get()));
  LOG(INFO) << "init rpc client with trainer_id " << options.worker.rank();
  // It beats from the first Connect on: while one server is waited for, the others hear of this worker.
  client->heart_ = std::thread([client = client.get()] { client->Beat(); });
  RETURN_IF_ERROR(client->Join());
  RETURN_IF_ERROR(client->OpenLanes());
  client->lanes_open_ = true;
  return client;
}

absl::Status GrpcClient::Prepare() {
  const std::optional<base::Mode> mode = base::ModeNamed(options_.job.mode());
  if (!mode.has_value())
    return absl::InvalidArgumentError(absl::StrCat("mode: there is no '", options_.job.mode(), "'"));
  steps_together_ = base::TraitsOf(*mode).steps_together();
  tracks_ = base::ValueIn(base::kLossPolicies, options_.job.on_worker_loss()) == base::LossPolicy::kAwait;
  map_ = {static_cast<int>(options_.servers.size()), static_cast<int>(options_.job.sparse_lanes())};
  options_.job.set_servers(static_cast<uint32_t>(options_.servers.size()));
  options_.job.set_tables_json(checkpoint::ToJson(options_.tables).dump());
  for (const table::SparseTableConfig& config : options_.tables.sparse) {
    ASSIGN_OR_RETURN(const auto accessor, table::MakeAccessor(config));
    widths_.push_back({accessor->pull_width(), accessor->push_width()});
  }
  ASSIGN_OR_RETURN(dense_size_, table::DenseTable::SizeOf(options_.tables.dense));
  for (const ServerAddress& server : options_.servers) {
    control_.push_back({server.dense.front(), wire::MakeChannel(server.dense.front(), options_.credentials.get())});
    stubs_.push_back(ps::ParameterServer::NewStub(control_.back().channel));
    traffic_.push_back(std::make_unique<LaneTraffic>());
    outage_logs_.push_back(std::make_unique<OutageLog>(ServerName(static_cast<int>(outage_logs_.size()))));
  }
  durable_.assign(stubs_.size(), true);
  return absl::OkStatus();
}

std::string GrpcClient::ServerName(int server) const {
  return absl::StrCat("server ", server, " (", control_[static_cast<size_t>(server)].endpoint, ")");
}

ps::FrameHeader GrpcClient::HeaderOf(ps::Verb verb, const base::StepGrads& grads) const {
  ps::FrameHeader header;
  header.set_verb(verb);
  header.set_step(grads.step);
  header.set_pass(grads.pass);
  header.set_batch(grads.batch);
  header.set_samples(grads.samples);
  if (!tracks_) return header;
  for (const uint64_t batch : grads.batches) header.add_batches(batch);
  if (grads.batches.empty()) header.add_batches(grads.batch);
  return header;
}

absl::Status GrpcClient::Join() {
  std::vector<ps::ConnectReply> replies;
  for (size_t server = 0; server < stubs_.size(); ++server) {
    ps::ConnectRequest request;
    if (server > 0) {
      request.set_job_id(replies.front().job_id());
      request.set_begun(replies.front().begun());
    }
    request.set_protocol(wire::kProtocolVersion);
    *request.mutable_worker() = options_.worker;
    request.set_server(static_cast<uint32_t>(server));
    *request.mutable_job() = options_.job;
    ASSIGN_OR_RETURN(ps::ConnectReply reply, Ask(server, request));
    ++joined_;
    durable_[server] = reply.durable();
    if (server == 0) loaded_ = reply.loaded();
    if (reply.loaded().identity() != loaded_.identity())
      return absl::FailedPreconditionError(absl::StrCat(
          ServerName(0), " started from ", Describe(loaded_), ", ", ServerName(static_cast<int>(server)), " from ",
          Describe(reply.loaded()), "; start all servers from copies of one save, or from none"));
    replies.push_back(std::move(reply));
  }
  job_id_ = replies.front().job_id();
  RETURN_IF_ERROR(TakeResumePoint(replies));
  return absl::OkStatus();
}

absl::StatusOr<ps::ConnectReply> GrpcClient::Ask(size_t server, const ps::ConnectRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  auto say = start + kQuietWait;
  while (true) {
    ps::ConnectReply reply;
    const grpc::Status status = Insist(server, options_.wait_timeout, [&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      return stubs_[server]->Connect(&context, request, &reply);
    });
    if (!status.ok()) return base::Annotate(wire::FromGrpc(status), ServerName(static_cast<int>(server)));
    if (reply.wait().empty()) return reply;
    const std::string waits_for = absl::StrCat(ServerName(static_cast<int>(server)), ": ", reply.wait());
    const auto now = std::chrono::steady_clock::now();
    if (options_.cancelled()) return absl::CancelledError(waits_for);
    if (now - start > options_.wait_timeout)
      return absl::DeadlineExceededError(
          absl::StrFormat("waited %.0f s: %s", options_.wait_timeout.count(), waits_for));
    if (now > say) {
      LOG(INFO) << "waits: " << waits_for;
      say = now + kLogWaitEvery;
    }
    std::this_thread::sleep_for(kJoinRest);
  }
}

// A server that came back with another job's folder knows by it that this worker is not its own.
ps::WorkerId GrpcClient::JoinedWorker() const {
  ps::WorkerId worker = options_.worker;
  worker.set_job(job_id_);
  return worker;
}

// Lanes that have nothing of the last pass yet have none of its batches. Without dense parameters the dense lanes get
// steps only if the mode makes steps together.
absl::Status GrpcClient::TakeResumePoint(const std::vector<ps::ConnectReply>& replies) {
  uint64_t pass = 0;
  for (const ps::ConnectReply& reply : replies)
    for (const ps::LaneProgress& lane : reply.lanes()) pass = std::max(pass, lane.pass());
  std::optional<base::DataPosition> common;
  std::optional<uint64_t> step;
  for (const ps::ConnectReply& reply : replies) {
    if (resume_point_.predecessor.empty()) resume_point_.predecessor = base::Printable(reply.before());
    for (int i = 0; i < reply.lanes_size(); ++i) {
      const ps::LaneProgress& lane = reply.lanes(i);
      base::DataPosition position{pass, 0, 0};
      if (lane.pass() == pass) {
        ASSIGN_OR_RETURN(position, wire::FromWire(lane));
      }
      if (i == map_.dense_lane()) resume_point_.dense.push_back(position);
      if (i == map_.dense_lane() && dense_size_ == 0 && !steps_together_) continue;
      common = common.has_value() ? common->Common(position) : position;
      step = std::min(step.value_or(lane.next_step()), lane.next_step());
    }
    for (const ps::Meeting& met : reply.met()) resume_point_.completed.emplace(met.name(), met.round());
  }
  resume_point_.position = common.value_or(base::DataPosition{});
  resume_point_.step = step.value_or(0);
  return absl::OkStatus();
}

absl::Status GrpcClient::OpenLanes() {
  lanes_.resize(stubs_.size());
  for (int server = 0; server < map_.servers; ++server) {
    const ServerAddress& address = options_.servers[static_cast<size_t>(server)];
    for (int lane = 0; lane < map_.lanes(); ++lane) {
      const bool dense = lane == map_.dense_lane();
      const std::vector<std::string>& ports = dense || address.sparse.empty() ? address.dense : address.sparse;
      const std::string& endpoint = ports[static_cast<size_t>(dense ? 0 : lane) % ports.size()];
      LaneOptions to;
      to.channel = wire::MakeChannel(endpoint, options_.credentials.get());
      to.worker = JoinedWorker();
      to.index = lane;
      to.server = ServerName(server);
      to.durable = durable_[static_cast<size_t>(server)];
      if (to.durable) to.timeout = options_.wait_timeout;
      to.outage_log = outage_logs_[static_cast<size_t>(server)].get();
      to.cancelled = options_.cancelled;
      ASSIGN_OR_RETURN(auto opened, Lane::Open(to, *traffic_[static_cast<size_t>(server)]));
      lanes_[static_cast<size_t>(server)].push_back(std::move(opened));
    }
  }
  return absl::OkStatus();
}

GrpcClient::~GrpcClient() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (heart_.joinable()) heart_.join();
  Goodbye(absl::CancelledError("the process ends"));
}

// fn(lane, its virtual shards) for every sparse lane.
template <typename Fn>
void GrpcClient::ForEachLane(const Fn& fn) {
  for (int server = 0; server < map_.servers; ++server)
    for (int index = 0; index < map_.sparse_lanes; ++index) fn(lane(server, index), map_.Shards(server, index));
}

void GrpcClient::Pull(const StepTag& tag, std::span<const base::TableKeys> keys,
                      std::span<const base::RowsView<float>> out, Call& call) {
  std::vector<size_t> bytes;
  for (const base::RowsView<float>& view : out) bytes.push_back(sizeof(base::Key) + view.width * sizeof(float));
  ForEachLane([&](Lane& lane, const wire::Range& shards) {
    const auto pieces =
        PiecesOfLane(keys, shards, [](const base::TableKeys& k) -> const base::TableKeys& { return k; });
    for (const std::vector<Piece>& frame : CutFrames(pieces, bytes, wire::kMaxPullBytes)) {
      ps::FrameHeader header;
      header.set_verb(ps::PULL);
      header.set_step(tag.step);
      header.set_pass(tag.pass);
      header.set_kind(ToWire(tag.kind));
      const ps::Precision precision = PrecisionOf(tag.kind);
      header.set_precision(precision);
      size_t body = 0;
      for (const Piece& piece : frame) body += AddSection(header, keys[piece.index], piece, out[piece.index].width);
      if (body == 0) continue;
      call.Expect(1);
      lane.Send(
          header, body,
          [&](wire::FrameWriter& writer) {
            for (size_t i = 0; i < frame.size(); ++i) AppendKeys(writer, header, i, keys[frame[i].index], frame[i]);
          },
          [out, frame, precision](wire::FrameReader& reply) -> absl::Status {
            for (const Piece& piece : frame)
              RETURN_IF_ERROR(wire::ReadRows(reply, precision, out[piece.index], piece.begin, piece.end));
            return absl::OkStatus();
          },
          call);
    }
  });
}

void GrpcClient::PullDense(const StepTag& tag, std::span<float> out, Call& call) {
  for (int server = 0; server < map_.servers; ++server) {
    const wire::Range block = map_.DenseBlock(server, dense_size_);
    ps::FrameHeader header;
    header.set_verb(ps::PULL_DENSE);
    header.set_step(tag.step);
    header.set_pass(tag.pass);
    header.set_kind(ToWire(tag.kind));
    const ps::Precision precision = PrecisionOf(tag.kind);
    header.set_precision(precision);
    const std::span<float> part = out.subspan(static_cast<size_t>(block.begin), static_cast<size_t>(block.size()));
    call.Expect(1);
    lane(server, map_.dense_lane())
        .Send(
            header, 0, [](wire::FrameWriter&) {},
            [part, precision](wire::FrameReader& reply) { return wire::ReadFloats(reply, precision, part); }, call);
  }
}

void GrpcClient::Push(const base::StepGrads& grads, Call& call) {
  ps::FrameHeader header = HeaderOf(ps::PUSH, grads);
  header.set_precision(options_.precision);
  SendSections(std::move(header), grads.tables, call);
}

void GrpcClient::Add(std::span<const base::TableGrads> differences, Call& call) {
  ps::FrameHeader header;
  header.set_verb(ps::ADD);
  SendSections(std::move(header), differences, call);
}

void GrpcClient::Combine(const Rounds& rounds, std::span<const base::TableGrads> differences, Call& call) {
  SendSections(ChangeOf(ps::COMBINE, rounds), differences, call);
}

void GrpcClient::SendSections(ps::FrameHeader header, std::span<const base::TableGrads> tables, Call& call) {
  std::vector<size_t> bytes;
  for (const base::TableGrads& table : tables)
    bytes.push_back(sizeof(base::Key) + static_cast<size_t>(table.grads.width) * sizeof(float));
  ForEachLane([&](Lane& lane, const wire::Range& shards) {
    const auto pieces =
        PiecesOfLane(tables, shards, [](const base::TableGrads& t) -> const base::TableKeys& { return t.keys; });
    const std::vector<std::vector<Piece>> frames = CutFrames(pieces, bytes, kPushBytes);
    if (!MaySend(call)) return;
    base::MutexLock together(lane.push_order());
    for (size_t f = 0; f < frames.size(); ++f) {
      header.clear_sections();
      size_t body = 0;
      for (const Piece& piece : frames[f]) {
        const base::TableGrads& table = tables[piece.index];
        body += AddSection(header, table.keys, piece, table.grads.width);
        body +=
            (piece.end - piece.begin) * static_cast<size_t>(table.grads.width) * wire::FloatBytes(header.precision());
      }
      header.set_more(f + 1 < frames.size());
      header.set_part(header.verb() == ps::PUSH && frames.size() > 1 ? static_cast<uint32_t>(f + 1) : 0);
      call.Expect(1);
      lane.Send(
          header, body,
          [&](wire::FrameWriter& writer) {
            for (size_t i = 0; i < frames[f].size(); ++i) {
              const Piece& piece = frames[f][i];
              const base::TableGrads& table = tables[piece.index];
              AppendKeys(writer, header, i, table.keys, piece);
              wire::AppendRows(writer, table.grads, piece.begin, piece.end, header.precision());
            }
          },
          nullptr, call);
    }
  });
}

void GrpcClient::PushDense(const base::StepGrads& grads, Call& call) {
  ps::FrameHeader header = HeaderOf(ps::PUSH_DENSE, grads);
  header.set_precision(options_.precision);
  SendBlocks(std::move(header), grads.dense, call);
}

void GrpcClient::AddDense(std::span<const float> differences, Call& call) {
  ps::FrameHeader header;
  header.set_verb(ps::ADD_DENSE);
  const base::DenseGrad piece{0, differences};
  SendBlocks(std::move(header), {&piece, 1}, call);
}

void GrpcClient::CombineDense(const Rounds& rounds, std::span<const float> differences, Call& call) {
  const base::DenseGrad piece{0, differences};
  SendBlocks(ChangeOf(ps::COMBINE_DENSE, rounds), {&piece, 1}, call);
}

void GrpcClient::SendBlocks(ps::FrameHeader header, std::span<const base::DenseGrad> pieces, Call& call) {
  for (int server = 0; server < map_.servers; ++server) {
    const wire::Range block = map_.DenseBlock(server, dense_size_);
    const size_t float_bytes = wire::FloatBytes(header.precision());
    const size_t bytes = static_cast<size_t>(block.size()) * float_bytes;
    if (!MaySend(call)) return;
    call.Expect(1);
    lane(server, map_.dense_lane())
        .Send(
            header, bytes,
            [&](wire::FrameWriter& writer) {
              uint8_t* out = writer.Take(bytes);
              for (const base::DenseGrad& piece : pieces) {
                const int64_t begin = std::max(piece.offset, block.begin);
                const int64_t end = std::min(piece.offset + static_cast<int64_t>(piece.values.size()), block.end);
                if (begin >= end) continue;
                wire::PackFloats(
                    piece.values.subspan(static_cast<size_t>(begin - piece.offset), static_cast<size_t>(end - begin)),
                    header.precision(), out + static_cast<size_t>(begin - block.begin) * float_bytes);
              }
            },
            nullptr, call);
  }
}

void GrpcClient::SendMark(const ps::FrameHeader& mark, Call& call) {
  for (int server = 0; server < map_.servers; ++server) {
    for (int index = 0; index < map_.lanes(); ++index) {
      ps::FrameHeader header = mark;
      call.Expect(1);
      lane(server, index)
          .Send(
              header, 0, [](wire::FrameWriter&) {}, nullptr, call);
    }
  }
}

void GrpcClient::Clear(Call& call) {
  ForEachLane([&](Lane& lane, const wire::Range&) {
    ps::FrameHeader header;
    header.set_verb(ps::CLEAR_LANE);
    call.Expect(1);
    lane.Send(
        header, 0, [](wire::FrameWriter&) {}, nullptr, call);
  });
}

void GrpcClient::BeginPass(const StepTag& tag, const base::DataPosition& learnt, Call& call) {
  ps::FrameHeader mark = MarkOf(ps::BEGIN, tag);
  if (tracks_) wire::ToWire(learnt, *mark.mutable_learnt());
  SendMark(mark, call);
}

void GrpcClient::LeavePass(const StepTag& tag, Call& call) { SendMark(MarkOf(ps::LEAVE, tag), call); }

template <typename Attempt>
grpc::Status GrpcClient::Insist(size_t server, std::chrono::duration<double> timeout, const Attempt& attempt) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const grpc::Status status = attempt();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE || !durable_[server] || options_.cancelled() ||
        waited > timeout)
      return status;
    outage_logs_[server]->LogIfDue(waited, timeout);
    control_[server].channel->WaitForConnected(std::chrono::system_clock::now() + kPoll);  // as in Lane::Reconnect
    std::this_thread::sleep_for(kInsistRest);
  }
}

absl::StatusOr<std::map<int, std::string>> GrpcClient::Gather(const std::string& name, const std::string& payload,
                                                              Reply reply, std::chrono::duration<double> timeout,
                                                              const std::function<bool()>& cancelled,
                                                              std::optional<uint64_t> round, Outcome outcome) {
  ps::GatherRequest request;
  *request.mutable_worker() = JoinedWorker();
  request.set_name(name);
  request.set_payload(payload);
  request.set_wants_all(reply == Reply::kPayloads);
  request.set_timeout(timeout.count());
  request.set_failed(outcome == Outcome::kFailure);
  {
    base::MutexLock lock(mu_);
    uint64_t& next = rounds_[name];
    if (round.has_value()) next = *round;
    request.set_round(next++);
  }
  ps::GatherReply answer;
  GatherWait wait;
  const grpc::Status status = Insist(0, options_.wait_timeout, [&] {
    grpc::ClientContext context;
    grpc::Status status;
    grpc::CompletionQueue queue;
    const auto call = stubs_.front()->AsyncGather(&context, request, &queue);
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool done = false, given_up = false;
    while (queue.AsyncNext(&tag, &done, std::chrono::system_clock::now() + kPoll) == grpc::CompletionQueue::TIMEOUT) {
      given_up = given_up || cancelled();
      if (given_up) context.TryCancel();
      wait.LogIfDue(name);
    }
    // A server that ends cuts off the rounds that wait in it. They go on at the one that comes back.
    if (!given_up && SaysCutOff(wire::FromGrpc(status)))
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server ended");
    return status;
  });
  if (!status.ok()) return base::Annotate(wire::FromGrpc(status), absl::StrCat(ServerName(0), ": '", name, "'"));
  std::map<int, std::string> payloads;
  for (int i = 0; i < answer.payloads_size() && i < answer.ranks_size(); ++i)
    payloads[static_cast<int>(answer.ranks(i))] = answer.payloads(i);
  return payloads;
}

void GrpcClient::SetProgress(const WorkerProgress& progress) {
  base::MutexLock lock(mu_);
  progress_ = progress;
}

std::map<int, WorkerProgress> GrpcClient::progress() const {
  base::MutexLock lock(mu_);
  return everybodys_;
}

void GrpcClient::AskToStop() {
  stop_asked_ = true;
  base::MutexLock lock(mu_);
  wake_.NotifyAll();
}

void GrpcClient::Beat() {
  while (true) {
    if (lanes_open_)
      for (const auto& lanes : lanes_)
        for (const auto& lane : lanes) lane->ReopenIfSilent();
    ps::HeartbeatRequest request;
    *request.mutable_worker() = options_.worker;
    {
      base::MutexLock lock(mu_);
      *request.mutable_progress() = progress_;
    }
    for (size_t server = 0; server < stubs_.size(); ++server) {
      request.set_wants_all(server == 0 && rank() == 0);
      request.set_stopping(stop_asked_);
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kBeat);
      ps::HeartbeatReply reply;
      if (!stubs_[server]->Heartbeat(&context, request, &reply).ok()) continue;  // its lanes tell what is wrong
      if (reply.stopping()) stop_asked_ = true;
      if (!request.wants_all()) continue;
      base::MutexLock lock(mu_);
      everybodys_.clear();
      for (int i = 0; i < reply.progress_size() && i < reply.ranks_size(); ++i)
        everybodys_[static_cast<int>(reply.ranks(i))] = reply.progress(i);
    }
    base::MutexLock lock(mu_);
    if (stopping_) return;
    wake_.WaitFor(mu_, kBeat);
    if (stopping_) return;
  }
}

void GrpcClient::Goodbye(const absl::Status& why) {
  {
    base::MutexLock lock(mu_);
    if (std::exchange(said_goodbye_, true)) return;
  }
  for (size_t server = 0; server < joined_; ++server) {
    ps::GoodbyeRequest request;
    *request.mutable_worker() = options_.worker;
    request.set_failed(!why.ok());
    request.set_reason(std::string(why.message()));
    const grpc::Status status = Insist(server, why.ok() ? kFarewell : std::chrono::seconds(0), [&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
      ps::GoodbyeReply reply;
      return stubs_[server]->Goodbye(&context, request, &reply);
    });
    if (!status.ok() && why.ok()) LOG(WARNING) << "goodbye: " << base::Printable(status.error_message());
  }
}

}  // namespace regatta::client
