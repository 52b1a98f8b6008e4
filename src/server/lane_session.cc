#include "server/lane_session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/failpoint.h"
#include "wire/lane_progress.h"
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
    case ps::COMBINE:
    case ps::COUNT_ROWS:
    case ps::READ_ROWS:
    case ps::LOAD_ROWS:
    case ps::CLEAR:
    case ps::CLEAR_LANE:
      return true;
    default:
      return false;
  }
}

// Replaces rows: nothing else changes tables meanwhile, and the log has it in the same order.
bool Replaces(ps::Verb verb) {
  switch (verb) {
    case ps::LOAD_ROWS:
    case ps::LOAD_DENSE:
    case ps::CLEAR:
    case ps::CLEAR_LANE:
      return true;
    default:
      return false;
  }
}

absl::Status CheckNumber(uint64_t number, const char* what) {
  if (number < wire::kMaxNumber) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("there is no ", what, " ", number));
}

// Only gradients are applied with a rate: differences are added as they are.
absl::Status CheckRated(const ps::FrameHeader& header) {
  bool section_rated = false;
  for (const ps::Section& section : header.sections()) section_rated |= section.rate();
  if ((!header.rate() || header.verb() == ps::PUSH_DENSE) && (!section_rated || header.verb() == ps::PUSH))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(ps::Verb_Name(header.verb()), " brings a learning rate where it has none"));
}

bool IsDenseVerb(ps::Verb verb) {
  switch (verb) {
    case ps::PULL_DENSE:
    case ps::PUSH_DENSE:
    case ps::ADD_DENSE:
    case ps::COMBINE_DENSE:
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

LaneSession::LaneSession(HostedJob& job, const Identity& worker, int lane, AccessLevel access, Cancelled cancelled)
    : job_(job),
      worker_(worker),
      lane_(lane),
      stream_(job.worker_lane(worker.rank, lane).OpenStream()),
      access_(access),
      cancelled_(std::move(cancelled)),
      shards_(lane < job.spec().lanes.sparse_lanes ? job.spec().lanes.Shards(job.server(), lane) : wire::Range{}),
      sections_(job, shards_),
      push_(job, shards_, job.push_memory(worker.rank)),
      reader_(job, shards_),
      keys_(static_cast<size_t>(job.sparse_tables())) {}

LaneSession::~LaneSession() {
  WorkerLane& worker_lane = job_.worker_lane(worker_.rank, lane_);
  base::MutexLock lock(worker_lane.mu);
  if (worker_lane.held == &push_) worker_lane.held = nullptr;
}

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

absl::Status LaneSession::Repeat(grpc::ByteBuffer& request, uint64_t index) {
  repeated_ = index;
  request_ = &request;
  wire::FrameReader frame(request);
  RETURN_IF_ERROR(frame.Open());
  return Dispatch(frame).status();
}

LaneSession::Reply LaneSession::Dispatch(wire::FrameReader& frame) {
  if (repeated_ == 0) RETURN_IF_ERROR(job_.roster().Check(worker_));
  const ps::Verb verb = frame.header().verb();
  RETURN_IF_ERROR(CheckAccess(access_, verb));
  const bool dense_lane = lane_ == job_.spec().lanes.dense_lane();
  if (dense_lane ? IsSparseVerb(verb) : IsDenseVerb(verb))
    return absl::InvalidArgumentError(
        absl::StrCat(ps::Verb_Name(verb), " does not belong on a ", dense_lane ? "dense" : "sparse", " lane"));
  RETURN_IF_ERROR(CheckNumber(frame.header().step(), "step"));
  RETURN_IF_ERROR(CheckNumber(frame.header().pass(), "pass"));
  RETURN_IF_ERROR(CheckRated(frame.header()));
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
      return BeginSnapshot(frame);
    case ps::END_CUT:
      return EndSnapshot(frame);
    default:
      return Change(frame);
  }
}

LaneSession::Reply LaneSession::Change(wire::FrameReader& frame) {
  const auto change = [&]() -> Reply {
    WorkerLane& worker_lane = job_.worker_lane(worker_.rank, lane_);
    base::MutexLock lock(worker_lane.mu);
    if (frame.header().verb() != ps::PUSH) push_.Close();
    Reply reply = ChangeOnce(frame, worker_lane);
    if (!reply.ok()) push_.Drop();
    return reply;
  };
  if (Replaces(frame.header().verb())) {
    const WriteGateClosed closed(job_.gate());
    return change();
  }
  const WriteGatePass pass(job_.gate());
  return change();
}

// Where workers come back, a push says which batches it holds: a checkpoint between the frames of a held push needs it
// to tell what it has already. Logs of protocol 3 may have others.
absl::Status LaneSession::CheckBatches(const ps::FrameHeader& header) const {
  const bool push = header.verb() == ps::PUSH || header.verb() == ps::PUSH_DENSE;
  if (header.batches_size() > 0 && !job_.returns())
    return absl::InvalidArgumentError("the request names batches, and workers do not come back");
  if (header.batches_size() == 0 && job_.returns() && push && repeated_ == 0)
    return absl::InvalidArgumentError("workers come back to this job, and the push does not name its batches");
  return absl::OkStatus();
}

// The streams of a lane that broke and of the one that took its place may bring the same request at the same time. The
// newer one takes over with the first request that is accepted or logged; one that is refused changes nothing.
LaneSession::Reply LaneSession::ChangeOnce(wire::FrameReader& frame, WorkerLane& worker_lane) {
  const uint64_t id = frame.header().id();
  if (repeated_ == 0 && worker_lane.owner != 0 && worker_lane.owner != worker_.incarnation)
    return absl::FailedPreconditionError(absl::StrCat("another process has taken the place of worker ", worker_.rank));
  superseded_ = repeated_ == 0 && stream_ < worker_lane.stream;
  if (superseded_)
    return absl::UnavailableError(
        absl::StrCat("a newer stream of lane ", lane_, " has taken over from this one, of worker ", worker_.rank));
  if (repeated_ == 0 && worker_lane.Did(worker_.incarnation, id)) return Done(id);
  const ps::FrameHeader& header = frame.header();
  const std::span<const uint64_t> batches(header.batches().data(), static_cast<size_t>(header.batches_size()));
  RETURN_IF_ERROR(CheckBatches(header));
  if (!batches.empty()) {
    // What the log holds of a step of sync that was staged is staged again.
    const bool applied = repeated_ == 0 || job_.stage(lane_) == nullptr;
    if (applied && worker_lane.Learnt(header.pass(), batches.front())) {
      worker_lane.stream = stream_;
      worker_lane.Note(worker_.incarnation, id);
      return Done(id);
    }
    if (!worker_lane.Fits(header.pass(), batches))
      return absl::InvalidArgumentError(absl::StrCat("batch ", batches.back(), " of pass ", header.pass(),
                                                     " is too far ahead of batch ", worker_lane.learnt.low));
  }
  ASSIGN_OR_RETURN(const base::DataPosition begun, wire::FromWire(header.learnt()));
  logged_ = false;
  Reply reply = DispatchChange(frame);
  if (reply.ok() || logged_ || stream_ == worker_lane.stream) {
    if (worker_lane.held != nullptr && worker_lane.held != &push_) worker_lane.held->Drop();
    worker_lane.stream = stream_;
    if (!reply.ok() || !push_.open() || !Holds(header)) worker_lane.EndHold();
  }
  RETURN_IF_ERROR(base::Failpoint("lane.applied"));
  if (!reply.ok()) return reply;
  if (push_.open() && Holds(header)) {
    worker_lane.Hold(push_, push_.part().logged);
    return reply;
  }
  worker_lane.Note(worker_.incarnation, id);
  if (!batches.empty()) worker_lane.Learn(header.pass(), batches, header.step());
  if (header.verb() == ps::BEGIN && header.has_learnt()) worker_lane.Begin(begun);
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
    case ps::COMBINE:
      return Add(frame);
    case ps::PUSH_DENSE:
      return PushDense(frame);
    case ps::ADD_DENSE:
    case ps::COMBINE_DENSE:
      return AddDense(frame);
    case ps::BEGIN:
      return Begin(frame);
    case ps::LEAVE:
      return Leave(frame);
    case ps::LOAD_ROWS:
      return LoadRows(frame);
    case ps::CLEAR:
    case ps::CLEAR_LANE:
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
  logged_ = true;  // whether or not it succeeds: a part of the record may be there
  ASSIGN_OR_RETURN(const uint64_t index, job_.Log(lane_, worker_, *request_));
  RETURN_IF_ERROR(base::Failpoint("lane.logged"));
  return index;
}

StageRequest LaneSession::ToStage() {
  return {origin(), [this] { return Log(); }};
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

LaneSession::Reply LaneSession::Pull(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  RETURN_IF_ERROR(sections_.Check(frame.header()));
  ps::FrameHeader reply;
  reply.set_id(header.id());
  size_t bytes = 0;
  uint64_t keys = 0;
  for (const ps::Section& section : header.sections()) {
    base::RawVector<base::Key>& table_keys = keys_[section.table()];
    table_keys.clear();
    RETURN_IF_ERROR(sections_.ReadKeys(frame, section, KeyCheck::kEnds, table_keys));
    bytes += size_t{section.keys()} * static_cast<size_t>(job_.sparse(section.table()).pull_width()) *
             wire::FloatBytes(header.precision());
    keys += section.keys();
  }
  RETURN_IF_ERROR(frame.ExpectEnd());
  if (bytes > wire::kMaxPullBytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("the rows asked for are ", bytes, " bytes; the limit is ", wire::kMaxPullBytes));
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

LaneSession::Reply LaneSession::Push(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  Traffic& traffic = job_.traffic();
  SyncStage* const stage = job_.stage(lane_);
  uint64_t staleness = 0;
  if (!Holds(header)) {
    RETURN_IF_ERROR(push_.ReadGradients(frame));
    RETURN_IF_ERROR(CheckFinite());
    RETURN_IF_ERROR(Log().status());
    RETURN_IF_ERROR(ApplyPart());
    if (!header.more()) staleness = NoteUpdate(header);
  } else {
    RETURN_IF_ERROR(Append(frame));
    if (!push_.open()) RETURN_IF_ERROR(CheckFinite());
    if (push_.open()) {
      if (stage != nullptr && repeated_ == 0) RETURN_IF_ERROR(stage->Check(worker_.rank, header.pass(), header.step()));
      RETURN_IF_ERROR(LogFrame());
    } else if (stage != nullptr) {
      RETURN_IF_ERROR(stage->Add(worker_.rank, push_.Take(), ToStage()));
    } else {
      RETURN_IF_ERROR(LogFrame());
      RETURN_IF_ERROR(ApplyPart());
      push_.Applied();
      staleness = NoteUpdate(header);
    }
  }
  const uint64_t keys = CountKeys(header);
  traffic.keys_pushed.Add(keys);
  traffic.lane_keys[static_cast<size_t>(lane_)].Add(keys);
  if (!push_.open()) traffic.pushes.Add();
  return Done(header.id(), staleness);
}

// A lane that broke may leave a push behind that its old stream holds. The worker sends that push again down a new
// stream, and it must fit in the worker's memory.
absl::Status LaneSession::Append(wire::FrameReader& frame) {
  const absl::Status appended = push_.Append(frame, origin());
  WorkerLane& worker_lane = job_.worker_lane(worker_.rank, lane_);
  worker_lane.mu.AssertHeld();
  if (!absl::IsResourceExhausted(appended) || worker_lane.held == nullptr || worker_lane.held == &push_)
    return appended;
  worker_lane.held->Drop();
  worker_lane.EndHold();
  return push_.Append(frame, origin());
}

// A frame of a push that is held: the checkpoint needs to know where in the log it begins.
absl::Status LaneSession::LogFrame() {
  ASSIGN_OR_RETURN(const uint64_t logged, Log());
  if (push_.part().logged == 0) push_.part().logged = logged;
  return absl::OkStatus();
}

absl::Status LaneSession::ApplyPart() {
  SyncStage::Sum step;
  step.step = push_.part().step;
  step.samples = push_.part().samples;
  for (const TablePart& table : push_.part().tables) step.tables.push_back(table.View());
  step.dense = push_.part().dense;
  step.dense_learning_rate = push_.part().dense_learning_rate;
  return job_.Apply(step);
}

// nan_policy abort: what a request brings to several tables is judged before it is logged, and before any is changed.
// Records were judged when they came.
absl::Status LaneSession::CheckFinite() {
  if (job_.spec().nan_policy != table::NanPolicy::kAbort || repeated_ != 0) return absl::OkStatus();
  for (const TablePart& table : push_.part().tables)
    if (!table.keys.empty()) RETURN_IF_ERROR(job_.sparse(table.table).CheckFinite(table.View()));
  return job_.dense().CheckFinite({0, push_.part().dense});
}

// Logs of protocol 3 have additions of other modes.
absl::Status LaneSession::CheckAdds(const ps::FrameHeader& header) const {
  if (job_.spec().traits().sends_differences() || repeated_ != 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(ps::Verb_Name(header.verb()), " belongs to geo, and this job is ", Name(job_.spec().mode)));
}

// Adds what push_ holds, or in COMBINE what it comes to with the changes of others.
absl::Status LaneSession::AddPart(const ps::FrameHeader& header, const GeoRounds::Step& apply) {
  RETURN_IF_ERROR(CheckFinite());
  const auto log = [this] { return Log().status(); };
  if (header.verb() == ps::ADD || header.verb() == ps::ADD_DENSE) {
    RETURN_IF_ERROR(log());
    return apply();
  }
  ASSIGN_OR_RETURN(const GeoRounds::Span span, GeoRounds::SpanOf(header));
  GeoRounds* const rounds = job_.rounds(lane_);
  if (rounds == nullptr) return absl::FailedPreconditionError("the job has no rounds: it is not geo");
  if (origin() == RequestOrigin::kWorker) RETURN_IF_ERROR(rounds->Check(worker_.rank, span.pass));
  return rounds->Combine(worker_.rank, span, job_.spec().nan_policy, push_.part(), log, apply);
}

LaneSession::Reply LaneSession::Add(wire::FrameReader& frame) {
  RETURN_IF_ERROR(CheckAdds(frame.header()));
  RETURN_IF_ERROR(push_.ReadDifferences(frame));
  RETURN_IF_ERROR(AddPart(frame.header(), [&]() -> absl::Status {
    for (const TablePart& table : push_.part().tables)
      if (!table.keys.empty()) RETURN_IF_ERROR(job_.sparse(table.table).Add(table.View(), job_.spec().nan_policy));
    return absl::OkStatus();
  }));
  job_.traffic().pushes.Add();
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::PullDense(wire::FrameReader& frame) {
  RETURN_IF_ERROR(frame.ExpectEnd());
  RETURN_IF_ERROR(CheckPrecision(frame.header()));
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

LaneSession::Reply LaneSession::PushDense(wire::FrameReader& frame) {
  RETURN_IF_ERROR(push_.ReadBlock(frame, origin()));
  RETURN_IF_ERROR(CheckFinite());
  if (SyncStage* const stage = job_.stage(lane_)) {
    RETURN_IF_ERROR(stage->Add(worker_.rank, push_.Take(), ToStage()));
  } else {
    RETURN_IF_ERROR(Log().status());
    RETURN_IF_ERROR(ApplyPart());
  }
  job_.traffic().dense_pushes.Add();
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::AddDense(wire::FrameReader& frame) {
  RETURN_IF_ERROR(CheckAdds(frame.header()));
  RETURN_IF_ERROR(push_.ReadBlock(frame, origin()));
  RETURN_IF_ERROR(
      AddPart(frame.header(), [&] { return job_.dense().Add(push_.part().dense, job_.spec().nan_policy); }));
  job_.traffic().dense_pushes.Add();
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::Begin(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  RETURN_IF_ERROR(frame.ExpectEnd());
  if (SyncStage* const stage = job_.stage(lane_)) {
    RETURN_IF_ERROR(stage->Begin(header.pass(), header.step(), ToStage()));
  } else if (job_.returns()) {
    RETURN_IF_ERROR(Log().status());
  }
  return Done(header.id());
}

LaneSession::Reply LaneSession::Leave(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  RETURN_IF_ERROR(frame.ExpectEnd());
  if (SyncStage* const stage = job_.stage(lane_))
    RETURN_IF_ERROR(stage->LeavePass(worker_.rank, header.pass(), ToStage()));
  if (GeoRounds* const rounds = job_.rounds(lane_)) {
    if (origin() == RequestOrigin::kWorker) RETURN_IF_ERROR(rounds->Check(worker_.rank, header.pass()));
    RETURN_IF_ERROR(rounds->Leave(worker_.rank, header.pass(), [this] { return Log().status(); }));
  }
  return Done(header.id());
}

// The rows of a lane are about to be replaced.
absl::Status LaneSession::AwaitNothing() {
  SyncStage* const stage = job_.stage(lane_);
  return stage == nullptr ? absl::OkStatus() : stage->Empty(origin());
}

// The rows of a lane have been replaced: what workers changed before counts no more.
void LaneSession::ForgetRounds() {
  if (GeoRounds* const rounds = job_.rounds(lane_)) rounds->Clear();
}

LaneSession::Reply LaneSession::LoadRows(wire::FrameReader& frame) {
  const ps::FrameHeader& header = frame.header();
  RETURN_IF_ERROR(reader_.CheckShard(header));
  RETURN_IF_ERROR(sections_.Check(frame.header()));
  const ps::Section& section = header.sections(0);
  table::SparseTable& table = job_.sparse(section.table());
  if (section.width() != static_cast<uint32_t>(table.row_width()))
    return absl::InvalidArgumentError(absl::StrCat("rows of ", section.width(), " floats for table ",
                                                   table.config().name, ", whose rows have ", table.row_width()));
  base::RawVector<base::Key> keys;
  RETURN_IF_ERROR(sections_.ReadKeys(frame, section, KeyCheck::kAll, keys));
  for (const base::Key key : keys)
    if (base::ShardOf(key) != header.shard())
      return absl::InvalidArgumentError(absl::StrCat("key ", key, " is not of virtual shard ", header.shard()));
  const size_t floats = keys.size() * section.width();
  if (frame.body_left() != floats * sizeof(float)) return absl::InvalidArgumentError("rows are missing");
  base::RawVector<float> rows(floats);
  RETURN_IF_ERROR(frame.Read(rows.data(), floats * sizeof(float)));
  RETURN_IF_ERROR(AwaitNothing());
  RETURN_IF_ERROR(Log().status());
  RETURN_IF_ERROR(table.Load(header.shard(), keys, rows));
  ForgetRounds();
  return Done(header.id());
}

// Every lane drops its own rows: each lane's log alone tells what has become of them. CLEAR, of protocol 3, dropped
// those of all lanes.
LaneSession::Reply LaneSession::Clear(wire::FrameReader& frame) {
  const bool all = frame.header().verb() == ps::CLEAR;
  if (all && repeated_ == 0)
    return absl::InvalidArgumentError("CLEAR is of another version; run the same Regatta everywhere");
  RETURN_IF_ERROR(frame.ExpectEnd());
  RETURN_IF_ERROR(AwaitNothing());
  RETURN_IF_ERROR(Log().status());
  const wire::Range shards = all ? job_.shards() : shards_;
  for (int table = 0; table < job_.sparse_tables(); ++table)
    job_.sparse(table).ClearShards(static_cast<uint32_t>(shards.begin), static_cast<uint32_t>(shards.end));
  ForgetRounds();
  return Done(frame.header().id());
}

// All workers wait meanwhile, with all that they have learnt pushed; what a server holds is of one moment.
LaneSession::Reply LaneSession::BeginSnapshot(wire::FrameReader& frame) {
  RETURN_IF_ERROR(frame.ExpectEnd());
  RETURN_IF_ERROR(job_.snapshot().Begin(frame.header().cut(), worker_));
  return Done(frame.header().id());
}

LaneSession::Reply LaneSession::EndSnapshot(wire::FrameReader& frame) {
  RETURN_IF_ERROR(frame.ExpectEnd());
  job_.snapshot().End(frame.header().cut());
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
  RETURN_IF_ERROR(AwaitNothing());
  RETURN_IF_ERROR(Log().status());
  RETURN_IF_ERROR(dense.Load(values, states, frame.header().count()));
  ForgetRounds();
  return Done(frame.header().id());
}

}  // namespace regatta::server
