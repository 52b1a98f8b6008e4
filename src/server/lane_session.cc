#include "server/lane_session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/failpoint.h"
#include "wire/packing.h"

namespace regatta::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kCountShardsEvery = 64;  // pulls

uint64_t NanosSince(Clock::time_point start) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
}

grpc::ByteBuffer Done(uint64_t id, uint64_t count = 0) {
  ps::FrameHeader header;
  header.set_id(id);
  header.set_count(count);
  return wire::FrameWriter(header, 0).Finish();
}

grpc::ByteBuffer Refusal(uint64_t id, const absl::Status& status) {
  ps::FrameHeader header;
  header.set_id(id);
  header.set_code(static_cast<int>(status.code()));
  header.set_message(std::string(status.message().substr(0, 4096)));
  return wire::FrameWriter(header, 0).Finish();
}

bool IsSparseVerb(ps::Verb verb) {
  switch (verb) {
    case ps::PULL:
    case ps::PUSH:
    case ps::ADD:
    case ps::COUNT_ROWS:
    case ps::READ_ROWS:
    case ps::LOAD_ROWS:
    case ps::CLEAR:
      return true;
    default:
      return false;
  }
}

bool IsDenseVerb(ps::Verb verb) {
  switch (verb) {
    case ps::PULL_DENSE:
    case ps::PUSH_DENSE:
    case ps::ADD_DENSE:
    case ps::READ_DENSE:
    case ps::LOAD_DENSE:
    case ps::BEGIN_CUT:
    case ps::END_CUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

LaneSession::LaneSession(HostedJob& job, const Identity& worker, int lane, Standing standing, Cancelled cancelled)
    : job_(job),
      worker_(worker),
      lane_(lane),
      standing_(standing),
      cancelled_(std::move(cancelled)),
      shards_(lane < job.spec().lanes.sparse_lanes ? job.spec().lanes.Shards(job.server(), lane) : wire::Range{}),
      reader_(job, shards_),
      keys_(static_cast<size_t>(job.sparse_tables())) {}

grpc::ByteBuffer LaneSession::Answer(grpc::ByteBuffer& request) {
  Traffic& traffic = job_.traffic();
  traffic.bytes_in.Add(request.Length());
  const auto start = Clock::now();
  request_ = &request;
  wire::FrameReader frame(request);
  const absl::Status opened = frame.Open();
  Reply reply = opened.ok() ? Dispatch(frame) : Reply(opened);
  if (!reply.ok()) traffic.refused.Add();
  grpc::ByteBuffer buffer = reply.ok() ? *std::move(reply) : Refusal(frame.header().id(), reply.status());
  traffic.bytes_out.Add(buffer.Length());
  const auto verb = static_cast<size_t>(frame.header().verb());
  if (opened.ok() && verb < traffic.latency.size()) traffic.latency[verb].Record(NanosSince(start));
  return buffer;
}

void LaneSession::Repeat(grpc::ByteBuffer& request, uint64_t index) {
  repeated_ = index;
  Answer(request);
}

LaneSession::Reply LaneSession::Dispatch(wire::FrameReader& frame) {
  if (repeated_ == 0) RETURN_IF_ERROR(job_.roster().Check(worker_));
  const ps::Verb verb = frame.header().verb();
  RETURN_IF_ERROR(CheckStanding(standing_, verb));
  const bool dense_lane = lane_ == job_.spec().lanes.dense_lane();
  if (dense_lane ? IsSparseVerb(verb) : IsDenseVerb(verb))
    return absl::InvalidArgumentError(
        absl::StrCat(ps::Verb_Name(verb), " does not belong on a ", dense_lane ? "dense" : "sparse", " lane"));
  switch (verb) {
    case ps::PULL:
      return Pull(frame);
    case ps::PULL_DENSE:
      return PullDense(frame);
    case ps::COUNT_ROWS:
      return reader_.CountRows(frame.header());
    case ps::READ_ROWS:
      return reader_.ReadRows(frame.header());
    case ps::READ_DENSE:
      return reader_.ReadDense(frame.header());
    case ps::BEGIN_CUT:
      return BeginCut(frame);
    case ps::END_CUT:
      return EndCut(frame);
    default:
      return Change(frame);
  }
}

// The streams of a lane that broke and of the one that took its place may bring the same request at the same time.
LaneSession::Reply LaneSession::Change(wire::FrameReader& frame) {
  const uint64_t id = frame.header().id();
  const GatePass pass(job_.gate());
  LaneSeat& seat = job_.seat(worker_.rank, lane_);
  base::MutexLock lock(seat.mu);
  if (repeated_ == 0 && seat.owner != 0 && seat.owner != worker_.incarnation)
    return absl::FailedPreconditionError(absl::StrCat("another process has taken the place of worker ", worker_.rank));
  if (repeated_ == 0 && seat.Did(worker_.incarnation, id)) return Done(id);
  const ps::FrameHeader& header = frame.header();
  const std::span<const uint64_t> batches(header.batches().data(), static_cast<size_t>(header.batches_size()));
  if (!batches.empty()) {
    if (!job_.returns()) return absl::InvalidArgumentError("the request names batches, and workers do not come back");
    // What the log holds of a step of sync that was staged is staged again.
    const bool applied = repeated_ == 0 || job_.stage(lane_) == nullptr;
    if (applied && seat.Learnt(header.pass(), batches.front())) {
      seat.Note(worker_.incarnation, id);
      return Done(id);
    }
    if (!seat.Fits(header.pass(), batches))
      return absl::InvalidArgumentError(absl::StrCat("batch ", batches.back(), " of pass ", header.pass(),
                                                     " is too far ahead of batch ", seat.learnt.low));
  }
  Reply reply = DispatchChange(frame);
  RETURN_IF_ERROR(base::Failpoint("lane.applied"));
  const bool whole = !part_open_ || !Holds(header);
  if (reply.ok() && whole) {
    seat.Note(worker_.incarnation, id);
    if (!batches.empty()) seat.Learn(header.pass(), batches, header.step());
    if (header.verb() == ps::BEGIN && header.has_learnt())
      seat.Begin({header.learnt().pass(), header.learnt().low(), header.learnt().window()});
  }
  seat.open = whole ? 0 : part_.logged;
  return reply;
}

// Whether the first frames of a push do nothing yet, and come again with the last: in sync a step is applied whole; a
// batch that another process of the rank may push again is pushed whole or not at all.
bool LaneSession::Holds(const ps::FrameHeader& header) const {
  return job_.stage(lane_) != nullptr || header.batches_size() > 0;
}

LaneSession::Reply LaneSession::DispatchChange(wire::FrameReader& frame) {
  switch (frame.header().verb()) {
    case ps::PUSH:
      return Push(frame);
    case ps::ADD:
      return Add(frame);
    case ps::PUSH_DENSE:
      return PushDense(frame);
    case ps::ADD_DENSE:
      return AddDense(frame);
    case ps::BEGIN:
      return Begin(frame);
    case ps::LEAVE:
      return Leave(frame);
    case ps::LOAD_ROWS:
      return LoadRows(frame);
    case ps::CLEAR:
      return Clear(frame);
    case ps::LOAD_DENSE:
      return LoadDense(frame);
    default:
      return absl::InvalidArgumentError(absl::StrCat("a request cannot be ", frame.header().verb()));
  }
}

// What is logged has been checked, and is not applied yet.
absl::StatusOr<uint64_t> LaneSession::Log() {
  if (repeated_ != 0) {
    RETURN_IF_ERROR(base::Failpoint("lane.replay"));
    return repeated_;
  }
  const absl::StatusOr<uint64_t> index = job_.Log(lane_, worker_, *request_);
  // Without this part a step of sync would wait for ever, with everybody who waits for the step.
  if (SyncStage* const stage = job_.stage(lane_); !index.ok() && stage != nullptr) stage->Fail(index.status());
  RETURN_IF_ERROR(index.status());
  RETURN_IF_ERROR(base::Failpoint("lane.logged"));
  return index;
}

// In sync a training pull of step t sees all steps before t, on this lane as on every other.
absl::Status LaneSession::AwaitTurn(const ps::FrameHeader& header) {
  SyncStage* stage = job_.stage(lane_);
  if (stage == nullptr || header.kind() != ps::TRAIN) return absl::OkStatus();
  const auto start = Clock::now();
  const absl::Status status = stage->AwaitBefore(header.step(), [&]() -> absl::Status {
    if (cancelled_()) return absl::CancelledError(absl::StrCat("nobody waits for step ", header.step(), " any more"));
    return job_.roster().Check(worker_);
  });
  job_.traffic().sync_wait.Record(NanosSince(start));
  return status;
}

// What is to be shown in place of rows that have been read, because the step of the pull changed them meanwhile or long
// ago: the pull is of a worker that comes back and has pushed the step down this lane before. Null: nothing.
absl::StatusOr<std::shared_ptr<const StepImage>> LaneSession::Before(const ps::FrameHeader& header) {
  SyncStage* stage = job_.stage(lane_);
  if (stage == nullptr || header.kind() != ps::TRAIN) return nullptr;
  return stage->BeforeOf(header.step());
}

// Staleness is measured where steps do not wait for each other. A step's first pull counts, the oldest that it uses.
void LaneSession::NotePull(const ps::FrameHeader& header) {
  if (job_.stage(lane_) != nullptr || header.kind() != ps::TRAIN) return;
  Pulled& pulled = pulled_[header.step() % kPulled];
  if (pulled.step == header.step()) return;
  pulled = {header.step(), job_.traffic().lane_updates[static_cast<size_t>(lane_)].value()};
}

// An update was applied: 1 + the updates of this lane, anybody's, since the pull that it was computed from. 0 where
// that is not known.
uint64_t LaneSession::NoteUpdate(const ps::FrameHeader& header) {
  metrics::Counter& updates = job_.traffic().lane_updates[static_cast<size_t>(lane_)];
  const uint64_t before = updates.value();
  updates.Add();
  Pulled& pulled = pulled_[header.step() % kPulled];
  if (pulled.step != header.step()) return 0;
  const uint64_t stale = before - std::min(before, pulled.updates);
  pulled = {};
  job_.traffic().staleness.Record(stale);
  return 1 + stale;
}

absl::Status LaneSession::CheckSections(const wire::FrameReader& frame) const {
  uint64_t keys = 0;
  if (frame.header().sections_size() > job_.sparse_tables())
    return absl::InvalidArgumentError("the request has more sections than the job has tables");
  if (!ps::Precision_IsValid(frame.header().precision()))
    return absl::InvalidArgumentError(absl::StrCat("there is no precision ", frame.header().precision()));
  std::vector<bool> seen(static_cast<size_t>(job_.sparse_tables()));
  for (const ps::Section& section : frame.header().sections()) {
    keys += section.keys();
    if (section.table() >= seen.size())
      return absl::InvalidArgumentError(absl::StrCat("there is no table ", section.table()));
    if (seen[section.table()])
      return absl::InvalidArgumentError(absl::StrCat("table ", section.table(), " comes twice in a request"));
    seen[section.table()] = true;
  }
  if (keys > wire::kMaxKeysAFrame)
    return absl::ResourceExhaustedError(absl::StrCat(keys, " keys in a request; the limit is ", wire::kMaxKeysAFrame));
  return absl::OkStatus();
}

// All keys of a push are looked at before any is used: it is applied whole or not at all. Of a pull the ends are
// enough: the table's walk refuses shards that descend, and a walk that fails has changed nothing.
absl::Status LaneSession::ReadKeys(wire::FrameReader& frame, const ps::Section& section, KeyCheck check,
                                   base::RawVector<base::Key>& keys) const {
  const size_t first = keys.size();
  const size_t key_bytes = section.key_bytes() == 0 ? sizeof(base::Key) : section.key_bytes();
  keys.resize(first + section.keys());
  RETURN_IF_ERROR(wire::ReadKeys(frame, key_bytes, std::span(keys).subspan(first)));
  int64_t least = first == 0 ? shards_.begin : base::ShardOf(keys[first - 1]);
  const size_t stride = check == KeyCheck::kAll ? 1 : std::max<size_t>(section.keys(), 2) - 1;
  for (size_t i = first; i < keys.size(); i += stride) {
    const int64_t shard = base::ShardOf(keys[i]);
    if (shard < least || shard >= shards_.end)
      return absl::InvalidArgumentError(absl::StrCat("key ", keys[i], " is of virtual shard ", shard, ", where ", least,
                                                     " to ", shards_.end - 1,
                                                     " may come: a lane's keys are its own, grouped by shard"));
    least = shard;
  }
  return absl::OkStatus();
}

LaneSession::Reply LaneSession::Pull(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  RETURN_IF_ERROR(CheckSections(frame));
  ps::FrameHeader reply;
  reply.set_id(header.id());
  size_t bytes = 0;
  uint64_t keys = 0;
  for (const ps::Section& section : header.sections()) {
    base::RawVector<base::Key>& table_keys = keys_[section.table()];
    table_keys.clear();
    RETURN_IF_ERROR(ReadKeys(frame, section, KeyCheck::kEnds, table_keys));
    bytes += size_t{section.keys()} * static_cast<size_t>(job_.sparse(section.table()).pull_width()) *
             wire::FloatBytes(header.precision());
    keys += section.keys();
  }
  RETURN_IF_ERROR(frame.ExpectEnd());
  if (bytes > wire::kMaxFrameBytes - wire::kMaxHeaderBytes)
    return absl::ResourceExhaustedError(absl::StrCat("the rows asked for are ", bytes, " bytes; the limit is ",
                                                     wire::kMaxFrameBytes - wire::kMaxHeaderBytes));
  RETURN_IF_ERROR(AwaitTurn(header));
  NotePull(header);
  wire::FrameWriter writer(reply, bytes);
  const base::StepKind kind = header.kind() == ps::TRAIN ? base::StepKind::kTrain : base::StepKind::kInfer;
  for (const ps::Section& section : header.sections()) {
    const table::SparseTable& table = job_.sparse(section.table());
    const base::RawVector<base::Key>& table_keys = keys_[section.table()];
    if (table_keys.empty()) continue;
    const int width = table.pull_width();
    const size_t floats = table_keys.size() * static_cast<size_t>(width);
    const bool straight = header.precision() == ps::FLOAT32;
    if (!straight) rows_.resize(floats);
    float* rows = straight ? reinterpret_cast<float*>(writer.Take(floats * sizeof(float))) : rows_.data();
    const base::RowsView<float> out{rows, width, width};
    RETURN_IF_ERROR(table.Pull({static_cast<int>(section.table()), table_keys, {}}, kind, out));
    ASSIGN_OR_RETURN(const auto before, Before(header));
    if (before != nullptr) before->Show(static_cast<int>(section.table()), table_keys, out);
    if (!straight) wire::AppendFloats(writer, rows_, header.precision());
  }
  Traffic& traffic = job_.traffic();
  traffic.pulls.Add();
  traffic.keys_pulled.Add(keys);
  traffic.lane_keys[static_cast<size_t>(lane_)].Add(keys);
  if (pulls_++ % kCountShardsEvery == 0)
    for (const ps::Section& section : header.sections()) traffic.shards.Add(keys_[section.table()]);
  return writer.Finish();
}

// Appends the frame's sections to part_, which has a place for every table.
absl::Status LaneSession::AppendSections(wire::FrameReader& frame, int (table::SparseTable::*width)() const) {
  RETURN_IF_ERROR(CheckSections(frame));
  const ps::FrameHeader& header = frame.header();
  if (!part_open_ || header.id() <= part_id_) {  // a push whose stream broke begins anew
    part_.pass = header.pass();
    part_.step = header.step();
    part_.samples = header.samples();
    part_.logged = 0;
    part_.tables.resize(static_cast<size_t>(job_.sparse_tables()));
    for (int i = 0; i < job_.sparse_tables(); ++i) {
      TablePart& table = part_.tables[static_cast<size_t>(i)];
      table.table = i;
      table.width = (job_.sparse(i).*width)();
      table.keys.clear();
      table.rows.clear();
    }
  } else if (part_.step != header.step()) {
    part_open_ = false;
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of step ", header.step(), " among those of step ", part_.step));
  }
  part_open_ = header.more();
  part_id_ = header.id();
  uint64_t keys = 0;
  for (const TablePart& table : part_.tables) keys += table.keys.size();
  for (const ps::Section& section : header.sections()) keys += section.keys();
  if (keys > wire::kMaxKeysAPush) {
    part_open_ = false;
    return absl::ResourceExhaustedError(
        absl::StrCat(keys, " keys in the frames of one push; the limit is ", wire::kMaxKeysAPush));
  }
  for (const ps::Section& section : header.sections()) {
    TablePart& table = part_.tables[section.table()];
    if (section.width() != static_cast<uint32_t>(table.width)) {
      part_open_ = false;
      return absl::InvalidArgumentError(absl::StrCat("rows of ", section.width(), " floats for table ",
                                                     job_.sparse(table.table).config().name, ", which takes ",
                                                     table.width));
    }
    absl::Status status = ReadKeys(frame, section, KeyCheck::kAll, table.keys);
    if (status.ok()) {
      const size_t floats = size_t{section.keys()} * section.width();
      const size_t first = table.rows.size();
      table.rows.resize(first + floats);
      status = wire::ReadFloats(frame, header.precision(), std::span(table.rows).subspan(first));
    }
    if (!status.ok()) {
      part_open_ = false;
      return status;
    }
    job_.traffic().keys_pushed.Add(section.keys());
    job_.traffic().lane_keys[static_cast<size_t>(lane_)].Add(section.keys());
  }
  return frame.ExpectEnd();
}

LaneSession::Reply LaneSession::Push(wire::FrameReader& frame) {
  RETURN_IF_ERROR(AppendSections(frame, &table::SparseTable::push_width));
  ASSIGN_OR_RETURN(const uint64_t logged, Log());
  if (part_.logged == 0) part_.logged = logged;
  const uint64_t id = frame.header().id();
  if (part_open_ && Holds(frame.header())) return Done(id);
  SyncStage* stage = job_.stage(lane_);
  uint64_t staleness = 0;
  if (stage != nullptr) {
    RETURN_IF_ERROR(stage->Add(worker_.rank, std::move(part_)));
    part_ = {};
  } else {
    RETURN_IF_ERROR(ApplyPart());
    for (TablePart& table : part_.tables) {
      table.keys.clear();
      table.rows.clear();
    }
    if (!part_open_) staleness = NoteUpdate(frame.header());
  }
  job_.traffic().pushes.Add();
  return Done(id, staleness);
}

absl::Status LaneSession::ApplyPart() {
  SyncStage::Sum step;
  step.step = part_.step;
  step.samples = part_.samples;
  for (const TablePart& table : part_.tables) step.tables.push_back(table.View());
  step.dense = part_.dense;
  return job_.Apply(step);
}

LaneSession::Reply LaneSession::Add(wire::FrameReader& frame) {
  part_open_ = false;
  RETURN_IF_ERROR(AppendSections(frame, &table::SparseTable::pull_width));
  part_open_ = false;
  RETURN_IF_ERROR(Log().status());
  for (const TablePart& table : part_.tables) {
    if (table.keys.empty()) continue;
    RETURN_IF_ERROR(job_.sparse(table.table).Add(table.View()));
  }
  job_.traffic().pushes.Add();
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::PullDense(wire::FrameReader& frame) {
  RETURN_IF_ERROR(frame.ExpectEnd());
  RETURN_IF_ERROR(AwaitTurn(frame.header()));
  ps::FrameHeader reply;
  reply.set_id(frame.header().id());
  const auto floats = static_cast<size_t>(job_.dense().size());
  const ps::Precision precision = frame.header().precision();
  wire::FrameWriter writer(reply, floats * wire::FloatBytes(precision));
  const bool straight = precision == ps::FLOAT32;
  if (!straight) rows_.resize(floats);
  if (floats > 0) {
    float* const values = straight ? reinterpret_cast<float*>(writer.Take(floats * sizeof(float))) : rows_.data();
    job_.dense().Snapshot({values, floats});
    ASSIGN_OR_RETURN(const auto before, Before(frame.header()));
    if (before != nullptr && before->dense.size() == floats)
      std::copy(before->dense.begin(), before->dense.end(), values);
  }
  if (!straight) wire::AppendFloats(writer, rows_, precision);
  job_.traffic().dense_pulls.Add();
  return writer.Finish();
}

absl::Status LaneSession::ReadBlock(wire::FrameReader& frame) {
  const auto floats = static_cast<size_t>(job_.dense().size());
  const ps::Precision precision = frame.header().precision();
  if (frame.body_left() != floats * wire::FloatBytes(precision))
    return absl::InvalidArgumentError(
        absl::StrCat(frame.body_left(), " bytes for a block of ", floats, " dense parameters"));
  part_.pass = frame.header().pass();
  part_.step = frame.header().step();
  part_.samples = frame.header().samples();
  part_.dense.resize(floats);
  return wire::ReadFloats(frame, precision, part_.dense);
}

LaneSession::Reply LaneSession::PushDense(wire::FrameReader& frame) {
  RETURN_IF_ERROR(ReadBlock(frame));
  ASSIGN_OR_RETURN(part_.logged, Log());
  SyncStage* stage = job_.stage(lane_);
  if (stage != nullptr) {
    RETURN_IF_ERROR(stage->Add(worker_.rank, std::move(part_)));
    part_ = {};
  } else {
    RETURN_IF_ERROR(ApplyPart());
  }
  job_.traffic().dense_pushes.Add();
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::AddDense(wire::FrameReader& frame) {
  RETURN_IF_ERROR(ReadBlock(frame));
  RETURN_IF_ERROR(Log().status());
  RETURN_IF_ERROR(job_.dense().Add(part_.dense));
  job_.traffic().dense_pushes.Add();
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::Begin(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  SyncStage* const stage = job_.stage(lane_);
  if (stage == nullptr && !job_.returns()) return Done(header.id());
  RETURN_IF_ERROR(Log().status());
  if (stage != nullptr) RETURN_IF_ERROR(stage->Begin(header.pass(), header.step()));
  return Done(header.id());
}

LaneSession::Reply LaneSession::Leave(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  SyncStage* const stage = job_.stage(lane_);
  if (stage == nullptr) return Done(header.id());
  RETURN_IF_ERROR(Log().status());
  RETURN_IF_ERROR(stage->LeavePass(worker_.rank, header.pass()));
  return Done(header.id());
}

LaneSession::Reply LaneSession::LoadRows(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  RETURN_IF_ERROR(reader_.CheckShard(header));
  RETURN_IF_ERROR(CheckSections(frame));
  const ps::Section& section = header.sections(0);
  table::SparseTable& table = job_.sparse(section.table());
  if (section.width() != static_cast<uint32_t>(table.row_width()))
    return absl::InvalidArgumentError(absl::StrCat("rows of ", section.width(), " floats for table ",
                                                   table.config().name, ", whose rows have ", table.row_width()));
  base::RawVector<base::Key> keys;
  RETURN_IF_ERROR(ReadKeys(frame, section, KeyCheck::kAll, keys));
  const size_t floats = keys.size() * section.width();
  if (frame.body_left() != floats * sizeof(float)) return absl::InvalidArgumentError("rows are missing");
  base::RawVector<float> rows(floats);
  RETURN_IF_ERROR(frame.Read(rows.data(), floats * sizeof(float)));
  RETURN_IF_ERROR(Log().status());
  RETURN_IF_ERROR(table.Load(header.shard(), keys, rows));
  return Done(header.id());
}

LaneSession::Reply LaneSession::Clear(wire::FrameReader& frame) {
  RETURN_IF_ERROR(Log().status());
  for (int table = 0; table < job_.sparse_tables(); ++table) job_.sparse(table).Clear();
  return Done(frame.header().id());
}

// All workers wait meanwhile, with all that they have learnt pushed; what a server holds is of one moment.
LaneSession::Reply LaneSession::BeginCut(wire::FrameReader& frame) {
  RETURN_IF_ERROR(frame.ExpectEnd());
  RETURN_IF_ERROR(job_.cut().Begin(frame.header().cut(), worker_));
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::EndCut(wire::FrameReader& frame) {
  RETURN_IF_ERROR(frame.ExpectEnd());
  job_.cut().End(frame.header().cut());
  return Done(frame.header().id());
}

// Values, then every state.
LaneSession::Reply LaneSession::LoadDense(wire::FrameReader& frame) {
  table::DenseTable& dense = job_.dense();
  const auto size = static_cast<size_t>(dense.size());
  if (frame.body_left() != size * sizeof(float) * static_cast<size_t>(1 + dense.state_count()))
    return absl::InvalidArgumentError(absl::StrCat(frame.body_left(), " bytes for a block of ", size,
                                                   " dense parameters with ", dense.state_count(), " states"));
  std::vector<float> values(size);
  RETURN_IF_ERROR(frame.Read(values.data(), size * sizeof(float)));
  std::vector<std::vector<float>> states(static_cast<size_t>(dense.state_count()), std::vector<float>(size));
  for (std::vector<float>& state : states) RETURN_IF_ERROR(frame.Read(state.data(), size * sizeof(float)));
  RETURN_IF_ERROR(Log().status());
  RETURN_IF_ERROR(dense.Load(values, states, frame.header().count()));
  return Done(frame.header().id());
}

}  // namespace regatta::server
