#include "client/grpc_client.h"

#include <algorithm>
#include <optional>

#include "base/failpoint.h"
#include "client/key_piece.h"
#include "wire/lane_progress.h"
#include "wire/packing.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

constexpr size_t kPushBytes = 16 << 20;  // of a frame; larger requests are split

ps::Kind ToWire(base::StepKind kind) { return kind == base::StepKind::kTrain ? ps::TRAIN : ps::INFER; }

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

// Returns the bytes that the section's keys will take.
size_t AddSection(ps::FrameHeader& header, const base::TableKeys& keys, const KeyPiece& piece, int width) {
  const std::span<const base::Key> part = piece.Of(keys);
  const size_t key_bytes = wire::KeyBytes(part);
  ps::Section* section = header.add_sections();
  section->set_table(static_cast<uint32_t>(keys.table));
  section->set_keys(static_cast<uint32_t>(part.size()));
  section->set_width(static_cast<uint32_t>(width));
  section->set_key_bytes(static_cast<uint32_t>(key_bytes));
  return part.size() * key_bytes;
}

// A learning rate, behind the gradients that it is for. Returns its bytes.
constexpr size_t RateBytes(std::optional<float> rate) { return rate.has_value() ? sizeof(float) : 0; }

void AppendRate(wire::FrameWriter& writer, std::optional<float> rate) {
  if (rate.has_value()) writer.Append(&*rate, sizeof(float));
}

void AppendKeys(wire::FrameWriter& writer, const ps::FrameHeader& header, size_t section, const base::TableKeys& keys,
                const KeyPiece& piece) {
  wire::AppendKeys(writer, piece.Of(keys), header.sections(static_cast<int>(section)).key_bytes());
}

// Where a worker may end when some lanes have its push and others have not.
bool MaySend(Call& call) {
  const absl::Status status = base::Failpoint("push.lane");
  if (status.ok()) return true;
  call.Expect(1);
  call.Done(status);
  return false;
}

}  // namespace

GrpcClient::GrpcClient(const ClientOptions& options, const JobLayout& layout, JobControl& control)
    : layout_(layout), tables_(options.tables), precision_(options.precision), control_(control) {
  for (int server = 0; server < servers(); ++server) traffic_.push_back(std::make_unique<LaneTraffic>());
}

absl::StatusOr<std::unique_ptr<GrpcClient>> GrpcClient::Open(const ClientOptions& options, const JobLayout& layout,
                                                             JobControl& control) {
  std::unique_ptr<GrpcClient> client(new GrpcClient(options, layout, control));
  RETURN_IF_ERROR(client->OpenLanes(options));
  control.heartbeat().OnBeat([client = client.get()] {
    for (const auto& lanes : client->lanes_)
      for (const auto& lane : lanes) lane->LookAfter();
  });
  return client;
}

GrpcClient::~GrpcClient() { control_.heartbeat().OnBeat({}); }

absl::Status GrpcClient::OpenLanes(const ClientOptions& options) {
  lanes_.resize(static_cast<size_t>(servers()));
  for (int server = 0; server < servers(); ++server) {
    const ServerAddress& address = options.servers[static_cast<size_t>(server)];
    for (int lane = 0; lane < layout_.lanes.lanes(); ++lane) {
      const bool dense = lane == layout_.lanes.dense_lane();
      const std::vector<std::string>& ports = dense || address.sparse.empty() ? address.dense : address.sparse;
      const std::string& endpoint = ports[static_cast<size_t>(dense ? 0 : lane) % ports.size()];
      LaneOptions to;
      to.channel = wire::MakeChannel(endpoint, options.credentials.get());
      to.worker = control_.joined_worker();
      to.index = lane;
      to.server = control_.server(server).name();
      to.durable = control_.server(server).durable();
      if (to.durable) to.timeout = options.wait_timeout;
      to.outage_log = &control_.server(server).outage_log();
      to.cancelled = options.cancelled;
      to.given_up = options.given_up;
      ASSIGN_OR_RETURN(auto opened, Lane::Open(to, *traffic_[static_cast<size_t>(server)]));
      lanes_[static_cast<size_t>(server)].push_back(std::move(opened));
    }
  }
  return absl::OkStatus();
}

ps::FrameHeader GrpcClient::HeaderOf(ps::Verb verb, const base::StepGrads& grads) const {
  ps::FrameHeader header;
  header.set_verb(verb);
  header.set_step(grads.step);
  header.set_pass(grads.pass);
  header.set_batch(grads.batch);
  header.set_samples(grads.samples);
  if (!layout_.tracks) return header;
  for (const uint64_t batch : grads.batches) header.add_batches(batch);
  if (grads.batches.empty()) header.add_batches(grads.batch);
  return header;
}

// fn(lane, its virtual shards) for every sparse lane.
template <typename Fn>
void GrpcClient::ForEachLane(const Fn& fn) {
  for (int server = 0; server < servers(); ++server)
    for (int index = 0; index < layout_.lanes.sparse_lanes; ++index)
      fn(lane(server, index), layout_.lanes.Shards(server, index));
}

void GrpcClient::Pull(const StepTag& tag, std::span<const base::TableKeys> keys,
                      std::span<const base::RowsView<float>> out, Call& call) {
  std::vector<size_t> bytes;
  for (const base::RowsView<float>& view : out) bytes.push_back(sizeof(base::Key) + view.width * sizeof(float));
  ForEachLane([&](Lane& lane, const wire::Range& shards) {
    const auto pieces =
        PiecesOfLane(keys, shards, [](const base::TableKeys& k) -> const base::TableKeys& { return k; });
    for (const std::vector<KeyPiece>& frame : CutFrames(pieces, bytes, wire::kMaxPullBytes)) {
      ps::FrameHeader header;
      header.set_verb(ps::PULL);
      header.set_step(tag.step);
      header.set_pass(tag.pass);
      header.set_kind(ToWire(tag.kind));
      const ps::Precision precision = PrecisionOf(tag.kind);
      header.set_precision(precision);
      size_t body = 0;
      for (const KeyPiece& piece : frame) body += AddSection(header, keys[piece.index], piece, out[piece.index].width);
      if (body == 0) continue;
      call.Expect(1);
      lane.Send(
          header, body,
          [&](wire::FrameWriter& writer) {
            for (size_t i = 0; i < frame.size(); ++i) AppendKeys(writer, header, i, keys[frame[i].index], frame[i]);
          },
          [out, frame, precision](wire::FrameReader& reply) -> absl::Status {
            for (const KeyPiece& piece : frame)
              RETURN_IF_ERROR(wire::ReadRows(reply, precision, out[piece.index], piece.begin, piece.end));
            return absl::OkStatus();
          },
          call);
    }
  });
}

void GrpcClient::PullDense(const StepTag& tag, std::span<float> out, Call& call) {
  for (int server = 0; server < servers(); ++server) {
    const wire::Range block = layout_.lanes.DenseBlock(server, layout_.dense_size);
    ps::FrameHeader header;
    header.set_verb(ps::PULL_DENSE);
    header.set_step(tag.step);
    header.set_pass(tag.pass);
    header.set_kind(ToWire(tag.kind));
    const ps::Precision precision = PrecisionOf(tag.kind);
    header.set_precision(precision);
    const std::span<float> part = out.subspan(static_cast<size_t>(block.begin), static_cast<size_t>(block.size()));
    call.Expect(1);
    lane(server, layout_.lanes.dense_lane())
        .Send(
            header, 0, [](wire::FrameWriter&) {},
            [part, precision](wire::FrameReader& reply) { return wire::ReadFloats(reply, precision, part); }, call);
  }
}

void GrpcClient::Push(const base::StepGrads& grads, Call& call) {
  ps::FrameHeader header = HeaderOf(ps::PUSH, grads);
  header.set_precision(precision_);
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
    const std::vector<std::vector<KeyPiece>> frames = CutFrames(pieces, bytes, kPushBytes);
    if (!MaySend(call)) return;
    base::MutexLock together(lane.push_order());
    for (size_t f = 0; f < frames.size(); ++f) {
      header.clear_sections();
      size_t body = 0;
      for (const KeyPiece& piece : frames[f]) {
        const base::TableGrads& table = tables[piece.index];
        body += AddSection(header, table.keys, piece, table.grads.width);
        body +=
            (piece.end - piece.begin) * static_cast<size_t>(table.grads.width) * wire::FloatBytes(header.precision());
        body += RateBytes(table.learning_rate);
        if (table.learning_rate.has_value()) header.mutable_sections()->rbegin()->set_rate(true);
      }
      header.set_more(f + 1 < frames.size());
      header.set_part(header.verb() == ps::PUSH && frames.size() > 1 ? static_cast<uint32_t>(f + 1) : 0);
      call.Expect(1);
      lane.Send(
          header, body,
          [&](wire::FrameWriter& writer) {
            for (size_t i = 0; i < frames[f].size(); ++i) {
              const KeyPiece& piece = frames[f][i];
              const base::TableGrads& table = tables[piece.index];
              AppendKeys(writer, header, i, table.keys, piece);
              wire::AppendRows(writer, table.grads, piece.begin, piece.end, header.precision());
              AppendRate(writer, table.learning_rate);
            }
          },
          nullptr, call);
    }
  });
}

void GrpcClient::PushDense(const base::StepGrads& grads, Call& call) {
  ps::FrameHeader header = HeaderOf(ps::PUSH_DENSE, grads);
  header.set_precision(precision_);
  const std::optional<float> rate = grads.dense.empty() ? std::nullopt : grads.dense_learning_rate;
  SendBlocks(std::move(header), grads.dense, rate, call);
}

void GrpcClient::AddDense(std::span<const float> differences, Call& call) {
  ps::FrameHeader header;
  header.set_verb(ps::ADD_DENSE);
  const base::DenseGrad piece{0, differences};
  SendBlocks(std::move(header), {&piece, 1}, std::nullopt, call);
}

void GrpcClient::CombineDense(const Rounds& rounds, std::span<const float> differences, Call& call) {
  const base::DenseGrad piece{0, differences};
  SendBlocks(ChangeOf(ps::COMBINE_DENSE, rounds), {&piece, 1}, std::nullopt, call);
}

void GrpcClient::SendBlocks(ps::FrameHeader header, std::span<const base::DenseGrad> pieces, std::optional<float> rate,
                            Call& call) {
  header.set_rate(rate.has_value());
  for (int server = 0; server < servers(); ++server) {
    const wire::Range block = layout_.lanes.DenseBlock(server, layout_.dense_size);
    const size_t float_bytes = wire::FloatBytes(header.precision());
    const size_t bytes = pieces.empty() ? 0 : static_cast<size_t>(block.size()) * float_bytes;  // nothing was learnt
    if (!MaySend(call)) return;
    call.Expect(1);
    lane(server, layout_.lanes.dense_lane())
        .Send(
            header, bytes + RateBytes(rate),
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
              AppendRate(writer, rate);
            },
            nullptr, call);
  }
}

void GrpcClient::SendMark(const ps::FrameHeader& mark, Call& call) {
  for (int server = 0; server < servers(); ++server) {
    for (int index = 0; index < layout_.lanes.lanes(); ++index) {
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
  if (layout_.tracks) wire::ToWire(learnt, *mark.mutable_learnt());
  SendMark(mark, call);
}

void GrpcClient::LeavePass(const StepTag& tag, Call& call) { SendMark(MarkOf(ps::LEAVE, tag), call); }

}  // namespace regatta::client
