#include "server/hosted_job.h"

#include <glog/logging.h>

#include <map>

#include "base/printable.h"
#include "server/lane_session.h"
#include "wire/lane_progress.h"

namespace regatta::server {
namespace {

ps::JournalEntry MemberEntry(const Identity& id, MemberState state) {
  ps::JournalEntry entry;
  ps::WorkerId* const worker = state == MemberState::kHere   ? entry.mutable_joined()
                               : state == MemberState::kDone ? entry.mutable_done()
                                                             : entry.mutable_lost();
  worker->set_rank(static_cast<uint32_t>(id.rank));
  worker->set_incarnation(id.incarnation);
  worker->set_where(id.where);
  return entry;
}

ps::JournalEntry GatherEntry(const std::string& name, uint64_t round, const Rendezvous::Payloads& payloads) {
  ps::JournalEntry entry;
  ps::Meeting& met = *entry.mutable_met();
  met.set_name(name);
  met.set_round(round);
  for (const auto& [rank, payload] : payloads) {
    met.add_ranks(static_cast<uint32_t>(rank));
    met.add_payloads(payload);
  }
  return entry;
}

}  // namespace

HostedJob::HostedJob(const JobSpec& spec, std::unique_ptr<TableShare> tables)
    : spec_(spec),
      tables_(std::move(tables)),
      roster_(spec.workers, spec.loss_policy, spec.worker_wait),
      rendezvous_(roster_),
      traffic_(spec.lanes.lanes()),
      worker_lanes_(static_cast<size_t>(spec.workers) * static_cast<size_t>(spec.lanes.lanes())),
      snapshot_(tables_->view(), gate_, snapshot_lock_) {
  for (int rank = 0; rank < spec_.workers; ++rank)
    push_memory_.push_back(std::make_shared<PushMemory>(rank, PushMemory::kDefaultLimit));
}

std::shared_ptr<PushMemory> HostedJob::push_memory(int rank) const {
  base::MutexLock lock(push_memory_mu_);
  return push_memory_[static_cast<size_t>(rank)];
}

void HostedJob::LimitPushMemory(uint64_t bytes) {
  base::MutexLock lock(push_memory_mu_);
  push_memory_limit_ = bytes;
  for (const auto& memory : push_memory_) memory->SetLimit(bytes);
}

absl::StatusOr<std::unique_ptr<HostedJob>> HostedJob::Create(const JobSpec& spec, int server) {
  ASSIGN_OR_RETURN(auto tables, TableShare::Create(spec.tables, {server, spec.lanes.servers}));
  return Create(spec, std::move(tables), nullptr, {});
}

absl::StatusOr<std::unique_ptr<HostedJob>> HostedJob::Create(const JobSpec& spec, std::unique_ptr<TableShare> tables,
                                                             Journal* journal, const ps::ServerState& state) {
  std::unique_ptr<HostedJob> job(new HostedJob(spec, std::move(tables)));
  if (spec.traits().staging == base::Staging::kSteps) {
    for (int lane = 0; lane < spec.lanes.lanes(); ++lane) {
      SyncStage::Capture capture;
      if (job->returns()) capture = [job = job.get()](const SyncStage::Sum& sum) { return job->Capture(sum); };
      job->stages_.push_back(std::make_unique<SyncStage>(
          job->roster_, [job = job.get()](const SyncStage::Sum& sum) { return job->Apply(sum); }, std::move(capture)));
    }
    job->roster_.Listen([job = job.get()] {
      for (const auto& stage : job->stages_) stage->CompleteSteps();
    });
  }
  if (spec.traits().staging == base::Staging::kRounds) {
    const size_t bytes =
        GeoRounds::kBytesAWorker * static_cast<size_t>(spec.workers) / static_cast<size_t>(spec.lanes.lanes());
    for (int lane = 0; lane < spec.lanes.lanes(); ++lane)
      job->rounds_.push_back(std::make_unique<GeoRounds>(spec.workers, bytes));
  }
  if (journal == nullptr) return job;
  RETURN_IF_ERROR(base::Annotate(job->Recover(*journal, state), journal->folder()));
  job->RecordIn(*journal);
  job->journal_ = journal;
  return job;
}

// Changes first, while everybody counts as awaited: a step of sync that was complete is complete again by its parts.
// Who has left since is told afterwards, and completes what waits for them.
absl::Status HostedJob::Recover(Journal& journal, const ps::ServerState& state) {
  RETURN_IF_ERROR(Restore(state));
  for (int lane = 0; lane < spec_.lanes.lanes(); ++lane)
    RETURN_IF_ERROR(Replay(journal, lane, lane < state.lanes_size() ? state.lanes(lane) : ps::LaneState()));
  RETURN_IF_ERROR(journal.KeepLanes(spec_.lanes.lanes()));
  for (const ps::JournalEntry& entry : journal.entries()) {
    const auto restore = [&](const ps::WorkerId& worker, MemberState state) {
      roster_.Restore({static_cast<int>(worker.rank()), worker.incarnation(), base::Printable(worker.where())}, state,
                      base::Printable(entry.before()));
    };
    if (entry.has_joined()) restore(entry.joined(), MemberState::kHere);
    if (entry.has_done()) restore(entry.done(), MemberState::kDone);
    if (entry.has_lost()) restore(entry.lost(), MemberState::kLost);
    rendezvous_.RestoreForgotten({entry.forgotten().data(), static_cast<size_t>(entry.forgotten_size())});
    if (!entry.has_met()) continue;
    Rendezvous::Payloads payloads;
    for (int i = 0; i < entry.met().ranks_size() && i < entry.met().payloads_size(); ++i)
      payloads[static_cast<int>(entry.met().ranks(i))] = entry.met().payloads(i);
    rendezvous_.Restore(entry.met().name(), entry.met().round(), std::move(payloads));
  }
  for (const Member& member : roster_.members())
    if (member.state != MemberState::kAwaited) Fence(member.id);
  for (const auto& stage : stages_) stage->CompleteSteps();
  return absl::OkStatus();
}

absl::StatusOr<std::string> HostedJob::Admit(const Identity& worker) {
  for (const auto& stage : stages_)
    if (worker.rank >= 0 && worker.rank < spec_.workers && stage->WentOnWithout(worker.rank))
      return absl::FailedPreconditionError(
          absl::StrCat("worker ", worker.rank,
                       " was done, and the job has gone on without it: start the job again from its last save"));
  ASSIGN_OR_RETURN(std::string predecessor, roster_.Join(worker));
  Fence(worker);
  if (predecessor.empty()) return predecessor;
  rendezvous_.Forget(worker.rank);
  base::MutexLock lock(push_memory_mu_);
  push_memory_[static_cast<size_t>(worker.rank)] = std::make_shared<PushMemory>(worker.rank, push_memory_limit_);
  return predecessor;
}

// A thread that holds a worker's lane finishes its present request.
void HostedJob::Fence(const Identity& worker) {
  for (int lane = 0; lane < spec_.lanes.lanes(); ++lane) {
    WorkerLane& place = worker_lane(worker.rank, lane);
    base::MutexLock lock(place.mu);
    place.owner = worker.incarnation;
  }
}

absl::StatusOr<StepImage> HostedJob::Capture(const SyncStage::Sum& sum) const {
  StepImage image;
  image.step = sum.step;
  for (const base::TableGrads& grads : sum.tables) {
    if (grads.keys.keys.empty()) continue;
    const table::SparseTable& table = sparse(grads.keys.table);
    StepImage::Table kept{grads.keys.table, table.pull_width(), {grads.keys.keys.begin(), grads.keys.keys.end()}, {}};
    kept.rows.resize(kept.keys.size() * static_cast<size_t>(kept.width));
    RETURN_IF_ERROR(
        table.Pull({kept.table, kept.keys, {}}, base::StepKind::kTrain, {kept.rows.data(), kept.width, kept.width}));
    image.tables.push_back(std::move(kept));
  }
  if (!sum.dense.empty()) {
    image.dense.resize(static_cast<size_t>(dense().size()));
    dense().Snapshot(image.dense);
  }
  return image;
}

void HostedJob::DropHeldPushes(std::chrono::duration<double> age) {
  const auto now = std::chrono::steady_clock::now();
  for (int lane = 0; lane < spec_.lanes.lanes(); ++lane) {
    for (int rank = 0; rank < spec_.workers; ++rank) {
      WorkerLane& place = worker_lane(rank, lane);
      base::MutexLock lock(place.mu);
      if (place.open == 0 || now - place.held_since < age) continue;
      LOG(WARNING) << "a push of worker " << rank << " on lane " << lane << " has waited for its last frame for over "
                   << age.count() << " s: it is dropped, and the worker sends it again";
      if (place.held != nullptr) place.held->Drop();
      place.EndHold();
      place.Fence();
    }
  }
}

ps::ServerState HostedJob::State() {
  ps::ServerState state;
  for (int lane = 0; lane < spec_.lanes.lanes(); ++lane) {
    ps::LaneState& kept = *state.add_lanes();
    kept.set_cut(journal_->LastLogged(lane));
    uint64_t needed = kept.cut() + 1;  // the first record that the tables do not show
    for (int rank = 0; rank < spec_.workers; ++rank) {
      WorkerLane& place = worker_lane(rank, lane);
      base::MutexLock lock(place.mu);
      if (place.open != 0) needed = std::min(needed, place.open);  // of a first request, too
      if (place.incarnation == 0) continue;
      ps::SeatState& taken = *kept.add_seats();
      taken.set_rank(static_cast<uint32_t>(rank));
      taken.set_incarnation(place.incarnation);
      taken.set_done(place.done);
      if (returns()) {
        wire::ToWire(place.learnt, *taken.mutable_learnt());
        taken.mutable_learnt()->set_next_step(place.next_step);
      }
    }
    if (SyncStage* const steps = stage(lane)) {
      const SyncStage::State staged = steps->state();
      kept.set_next_step(staged.next);
      for (const int64_t pass : staged.left_pass) kept.add_left_pass(pass);
      if (staged.oldest != 0) needed = std::min(needed, staged.oldest);
      if (staged.before != nullptr) ToWire(*staged.before, *kept.mutable_before());
      if (staged.begun.has_value()) {
        kept.set_begun_pass(staged.begun->first);
        kept.set_begun_step(staged.begun->second);
      }
    }
    if (const GeoRounds* const open = rounds(lane)) open->Save(*kept.mutable_rounds());
    kept.set_logged(needed - 1);
  }
  if (const auto& from = loaded(); from.has_value()) {
    state.mutable_loaded()->set_epochs(from->epochs);
    state.mutable_loaded()->set_steps(from->steps);
    state.mutable_loaded()->set_identity(from->identity);
  }
  return state;
}

absl::Status HostedJob::Restore(const ps::ServerState& state) {
  for (int lane = 0; lane < std::min(state.lanes_size(), spec_.lanes.lanes()); ++lane) {
    const ps::LaneState& kept = state.lanes(lane);
    for (const ps::SeatState& taken : kept.seats()) {
      if (taken.rank() >= static_cast<uint32_t>(spec_.workers)) continue;
      WorkerLane& place = worker_lane(static_cast<int>(taken.rank()), lane);
      base::MutexLock lock(place.mu);
      place.Note(taken.incarnation(), taken.done());
      ASSIGN_OR_RETURN(place.learnt, wire::FromWire(taken.learnt()));
      place.next_step = taken.learnt().next_step();
    }
    if (GeoRounds* const open = rounds(lane)) RETURN_IF_ERROR(open->Restore(kept.rounds()));
    SyncStage* const steps = stage(lane);
    if (steps == nullptr) continue;
    SyncStage::State staged{kept.next_step(), {kept.left_pass().begin(), kept.left_pass().end()}};
    if (kept.has_before()) staged.before = std::make_shared<const StepImage>(FromWire(kept.before()));
    if (kept.has_begun_pass()) staged.begun = {kept.begun_pass(), kept.begun_step()};
    steps->Restore(staged);
  }
  return absl::OkStatus();
}

// Whether a record that a checkpoint shows is needed all the same: the push may not have been whole, or its step not
// complete. Pushes that were are known by their batches and steps. Other requests would be done twice.
bool HostedJob::MayBeOpen(ps::Verb verb) { return verb == ps::PUSH || verb == ps::PUSH_DENSE; }

// CLEAR, of protocol 3, dropped the rows of all lanes, and stands in the log of one. Where it is that log's first
// change the job had only begun, and all that other lanes have came later. Otherwise nothing tells what came before it.
absl::Status HostedJob::CheckOldClear(ps::Verb verb, int lane, uint64_t index, uint64_t changes) const {
  if (verb != ps::CLEAR || changes == 0 || spec_.lanes.sparse_lanes == 1) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "record ", index, " of the log of lane ", lane, " drops the rows of all lanes, in the middle of a job. It was ",
      "written by an earlier version, whose log does not tell what came before it in other lanes; start from the last "
      "save, with an empty data_dir"));
}

// Steps of sync that the checkpoint has are refused by their stage.
absl::Status HostedJob::Replay(Journal& journal, int lane, const ps::LaneState& state) {
  std::map<int, std::unique_ptr<LaneSession>> sessions;  // by rank
  uint64_t changes = 0, bytes = 0;
  const auto again = [&](const Identity& worker, uint64_t index, grpc::ByteBuffer& request) -> absl::Status {
    if (worker.rank < 0 || worker.rank >= spec_.workers)
      return absl::DataLossError(absl::StrCat("the log of lane ", lane, " names a worker ", worker.rank));
    ps::Verb verb = ps::NONE;
    if (wire::FrameReader frame(request); frame.Open().ok()) verb = frame.header().verb();
    if (index <= state.cut() && !MayBeOpen(verb)) return absl::OkStatus();
    RETURN_IF_ERROR(CheckOldClear(verb, lane, index, changes));
    std::unique_ptr<LaneSession>& session = sessions[worker.rank];
    if (session == nullptr || session->worker().incarnation != worker.incarnation)
      session = std::make_unique<LaneSession>(*this, worker, lane);
    ++changes;
    bytes += request.Length();
    // One that failed when it came fails again.
    if (const absl::Status repeated = session->Repeat(request, index); !repeated.ok())
      VLOG(1) << "lane " << lane << ": logged request " << index << " of worker " << worker.rank
              << " is refused again: " << repeated.message();
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(journal.OpenLane(lane, state.logged(), again));
  if (changes > 0)
    LOG(INFO) << "lane " << lane << ": did " << changes << " logged requests again, " << bytes << " bytes";
  return absl::OkStatus();
}

void HostedJob::RecordIn(Journal& journal) {
  roster_.RecordWith(
      [&journal](const Identity& id, MemberState state) { return journal.Write(MemberEntry(id, state)); });
  rendezvous_.RecordWith([&journal](const std::string& name, uint64_t round, const Rendezvous::Payloads& payloads) {
    return journal.Write(GatherEntry(name, round, payloads));
  });
}

// Rounds end, and workers come and go, before and after it is written; it is forced to the disk meanwhile.
absl::StatusOr<uint64_t> HostedJob::CompactJobLog() {
  uint64_t bytes = 0;
  RETURN_IF_ERROR(rendezvous_.Hold([&](const Rendezvous::Over& over, const ForgottenRounds& forgotten) {
    return roster_.Hold([&](const std::vector<Member>& members) -> absl::Status {
      std::vector<ps::JournalEntry> known;
      for (const Member& member : members) {
        if (member.state == MemberState::kAwaited) continue;
        const bool away = member.state == MemberState::kAway;  // as the records have it, it is here
        known.push_back(MemberEntry(member.id, away ? MemberState::kHere : member.state));
        known.back().set_before(member.predecessor);
      }
      for (const auto& [key, payloads] : over) known.push_back(GatherEntry(key.first, key.second, *payloads));
      const std::vector<uint64_t> pairs = forgotten.Pairs();
      if (!pairs.empty()) known.emplace_back().mutable_forgotten()->Add(pairs.begin(), pairs.end());
      ASSIGN_OR_RETURN(bytes, journal_->CompactJobLog(known));
      return absl::OkStatus();
    });
  }));
  RETURN_IF_ERROR(journal_->DropBeforeCompaction());
  return bytes;
}

void HostedJob::End() {
  if (journal_ == nullptr) return;
  if (const absl::Status ended = journal_->End(); !ended.ok()) LOG(WARNING) << ended.message();
}

wire::Range HostedJob::shards() const {
  return {spec_.lanes.Shards(server(), 0).begin, spec_.lanes.Shards(server(), spec_.lanes.sparse_lanes - 1).end};
}

absl::Status HostedJob::Apply(const SyncStage::Sum& step) {
  const table::PushOptions options{.step = step.step, .samples = step.samples, .nan_policy = spec_.nan_policy};
  for (const base::TableGrads& table : step.tables)
    if (!table.keys.keys.empty()) RETURN_IF_ERROR(sparse(table.keys.table).Push(table, options));
  if (step.dense.empty()) return absl::OkStatus();
  const base::DenseGrad grad{0, step.dense};
  return dense().Push({&grad, 1}, options, step.dense_learning_rate);
}

}  // namespace regatta::server
