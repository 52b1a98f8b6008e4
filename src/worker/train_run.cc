#include "worker/train_run.h"

#include <glog/logging.h>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/run_record.h"
#include "checkpoint/save_list.h"
#include "fleet/worker_node.h"
#include "metrics/process_load.h"
#include "model/torch_net.h"
#include "worker/batch_text.h"
#include "worker/stop_signal.h"

namespace regatta::worker {
namespace {

namespace rounds = run::rounds;
using run::AfterBarrier;
using run::Attendance;
using run::StopRequest;
using run::WorkerPlace;
using run::WorkerPlaces;

// Of a meter that goes around with a checkpoint's barrier: servers keep what was said there for a while.
constexpr size_t kSmallMeter = 64 << 10;

// That a stop of sync waits for the barrier at which all stop: workers may have become much slower since it was
// planned, or wait for data.
constexpr std::chrono::seconds kStopTimeout(10);

double MinutesSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 60;
}

std::string Gigabytes(uint64_t bytes) { return absl::StrFormat("%.2f GB", static_cast<double>(bytes) / 1e9); }

}  // namespace

TrainRun::TrainRun(Job& job, TrainData data, train::Reporter& reporter)
    : job_(job),
      reporter_(reporter),
      team_(job.fleet->team()),
      data_(std::move(data.train)),
      validation_(std::move(data.validation)),
      session_(team_) {
  if (job.metrics != nullptr) job.metrics->Show(data_.dataset.get());
  if (!job.alone()) progress_ = std::make_unique<JobProgress>(*job.fleet->worker());
}

TrainRun::~TrainRun() {
  if (job_.metrics != nullptr) job_.metrics->Show(static_cast<const data::Dataset*>(nullptr));
}

absl::StatusOr<RunEnd> TrainRun::Run() {
  RETURN_IF_ERROR(run::AllOk(team_, rounds::Open(), OpenRoot()));
  RETURN_IF_ERROR(run::AllOk(team_, rounds::Start(), Start()));
  if (job_.alone()) SayMemory();
  absl::StatusOr<RunEnd> end = RunEpochs();
  if (checkpoint_ != nullptr)
    if (const absl::Status written = checkpoint_->Finish(); end.ok() && !written.ok()) end = written;
  if (!end.ok()) {
    if (root_ != nullptr) root_->MarkInterrupted().IgnoreError();  // the error at hand matters more
    return end;
  }
  if (end->kind == RunEnd::Kind::kFinished && root_ != nullptr) RETURN_IF_ERROR(root_->MarkFinished());
  return end;
}

// A worker that takes the place of the one that opened it goes on with that one's run.
checkpoint::OpenMode TrainRun::RootMode() const {
  if (const client::ResumePoint* const resume_point = team_.resume_point(); resume_point != nullptr) {
    const auto run = checkpoint::ReadRunRecord(job_.run.runner.model_save_path);
    if (team_.Completed(rounds::Open()) || (run.ok() && resume_point->predecessor == fleet::WhereIs(run->pid)))
      return checkpoint::OpenMode::kResume;
  }
  return job_.args.resume      ? checkpoint::OpenMode::kResume
         : job_.args.overwrite ? checkpoint::OpenMode::kOverwrite
                               : checkpoint::OpenMode::kFresh;
}

absl::Status TrainRun::OpenRoot() {
  if (!team_.chief()) return absl::OkStatus();
  checkpoint::SaveRootOptions options;
  options.path = job_.run.runner.model_save_path;
  options.mode = RootMode();
  std::string text;
  for (const base::ConfigUse& use : job_.config.Effective()) {
    if (use.effect == base::ConfigUse::Effect::kNone) continue;
    options.config[use.path] = use.json;
    absl::StrAppend(&text, use.path, "=", use.json, "\n");
  }
  options.config_hash = base::HashBytes(text);
  options.model = job_.identity();
  options.keep_epochs = static_cast<uint64_t>(job_.run.runner.keep_epochs);
  ASSIGN_OR_RETURN(root_, checkpoint::SaveRoot::Open(options));
  return absl::OkStatus();
}

run::RunOrigin TrainRun::Origin() const {
  const settings::RunnerOptions& runner = job_.run.runner;
  run::RunOrigin origin;
  origin.resume = job_.args.resume;
  origin.warm_start = runner.model_init_path;
  if (!origin.warm_start.empty() && runner.last_epoch >= 0) absl::StrAppend(&origin.warm_start, "/", runner.last_epoch);
  origin.alone = job_.alone();
  origin.identity = job_.identity();
  origin.settings_hash = data_.settings_hash;
  return origin;
}

absl::Status TrainRun::Start() {
  ASSIGN_OR_RETURN(run::RunStart start, run::FindRunStart(Origin(), team_, root_.get(), job_.store(), reporter_));
  RETURN_IF_ERROR(session_.Begin({start.epoch, start.first_step, start.position}));
  returns_ = session_.returns();
  if (epoch() > start.epoch) finished_ = epoch() - 1;
  if (epoch() == start.epoch && !session_.over()) restored_meter_ = std::move(start.meter);
  unvalidated_ = start.unvalidated;
  best_ = start.best;
  ASSIGN_OR_RETURN(comm::Communicator* const communicator,
                   job_.fleet->StartCommunicator(start.first_step + run::MostBatches(start.places)));
  trainer_ =
      std::make_unique<train::Trainer>(model::TorchNets(*job_.model, job_.run.model), *communicator,
                                       train::TrainerOptions{.threads = static_cast<int>(job_.run.runner.thread_num),
                                                             .clip_by_norm = job_.run.optimizer.clip_by_norm,
                                                             .tracer = job_.tracer.get()});
  if (job_.alone()) return absl::OkStatus();
  const settings::RunnerOptions& runner = job_.run.runner;
  fleet::WorkerNode& worker = *job_.fleet->worker();
  checkpoint_ = std::make_unique<run::TeamCheckpoint>(
      team_, run::CheckpointPace{static_cast<uint64_t>(runner.checkpoint_steps), runner.checkpoint_minutes},
      run::StepPace{worker.mode().steps_together(), communicator->traits().batches_a_push},
      [&worker](uint64_t number) { return worker.BeginSnapshot(number); },
      [this](const WorkerPlaces& places) -> run::TeamCheckpoint::Save {
        return
            [this, run = StateOf(places)](checkpoint::ModelStore& model) { return root_->SaveCheckpoint(model, run); };
      });
  stop_teller_ = std::make_unique<run::StopTeller>([this] { return IsOver(); }, [this] { team_.AskToStop(); });
  return absl::OkStatus();
}

void TrainRun::SayMemory() const {
  uint64_t row_bytes = 0;
  for (const table::SparseTable* table : job_.embedded().sparse()) row_bytes += fleet::EstimateRowBytes(*table);
  LOG(INFO) << "memory: " << Gigabytes(metrics::ResidentBytes()) << " now, about " << row_bytes
            << " bytes more a distinct id (" << Gigabytes(row_bytes * 1'000'000) << " a million ids)";
  if (job_.run.runner.max_memory > 0)
    LOG(INFO) << "memory: runner.max_memory " << Gigabytes(job_.run.runner.max_memory) << " leaves room for about "
              << (static_cast<uint64_t>(job_.run.runner.max_memory) -
                  std::min<uint64_t>(metrics::ResidentBytes(), job_.run.runner.max_memory)) /
                     std::max<uint64_t>(row_bytes, 1)
              << " distinct ids";
}

// An epoch that was over before this process came is neither trained nor saved again.
absl::StatusOr<RunEnd> TrainRun::RunEpochs() {
  const auto epochs = static_cast<uint64_t>(job_.run.runner.epochs);
  ASSIGN_OR_RETURN(AfterEpoch next, ValidateTogether(rounds::ValidatedResumed(), unvalidated_));
  if (finished_.has_value()) {  // which epoch is the best so far
    ASSIGN_OR_RETURN(next, ValidateTogether(rounds::ValidatedEpoch(*finished_), finished_));
  }
  if (epoch() >= epochs && next != run::ValidatedMessage::STOPPED)
    reporter_.Note(absl::StrCat("nothing to train: ", epoch(), " of ", epochs, " epochs are done"));
  while (epoch() < epochs && next == run::ValidatedMessage::GO_ON) {
    uint64_t batches = 0;
    if (!session_.over()) {
      ASSIGN_OR_RETURN(const train::PassEnd end, RunEpoch());
      ASSIGN_OR_RETURN(const run::EndMessage all, session_.EndPass(EndHere(end)));
      if (all.stopped()) return job_.alone() ? StopAlone(end) : StopTogether(end, all);
      RETURN_IF_ERROR(FinishEpoch(end));
      batches = end.position.low;
    }
    ASSIGN_OR_RETURN(next, ValidateTogether(rounds::ValidatedEpoch(epoch()), epoch()));
    RETURN_IF_ERROR(session_.FinishEpoch(batches));
  }
  return next == run::ValidatedMessage::STOPPED ? StopUnvalidated() : RunEnd{};
}

absl::StatusOr<train::PassEnd> TrainRun::RunEpoch() {
  meter_ = std::make_unique<train::PassMeter>(epoch());
  if (!restored_meter_.empty()) RETURN_IF_ERROR(meter_->Restore(restored_meter_));
  restored_meter_.clear();
  if (progress_ != nullptr) progress_->BeginEpoch(epoch());
  if (checkpoint_ != nullptr) checkpoint_->BeginEpoch(epoch());
  if (returns_) RETURN_IF_ERROR(checkpoint_->ComeBack(session_.began_at(), Here(session_.position(), Meter::kSmall)));
  returns_ = false;
  ASSIGN_OR_RETURN(train::PassEnd end, trainer_->RunPass(*data_.dataset, base::StepKind::kTrain, session_.position(),
                                                         session_.first_step(), *this));
  if (progress_ != nullptr) progress_->EndEpoch();
  return end;
}

// A signal counts also if this worker's data had ended before it: the others stop for it.
run::EndMessage TrainRun::EndHere(const train::PassEnd& end) const {
  run::EndMessage message;
  message.set_stopped(!end.complete);
  message.set_signal(static_cast<uint32_t>(StopSignal::Requested()));
  message.set_out_of_time(IsOutOfTime());
  return message;
}

absl::StatusOr<RunEnd> TrainRun::StopAlone(const train::PassEnd& end) {
  if (!memory_.ok()) {
    RETURN_IF_ERROR(SaveAndStop(end, "out of memory"));
    return memory_;
  }
  const bool signal = StopSignal::Requested() != 0;
  RETURN_IF_ERROR(SaveAndStop(end, signal ? "stopped" : "runner.max_minutes is over"));
  if (signal) return RunEnd{RunEnd::Kind::kStopped, StopSignal::Requested()};
  return RunEnd{RunEnd::Kind::kOutOfTime};
}

// The servers' model stands in the middle of an epoch, and so does every worker, each at a step of its own.
absl::StatusOr<RunEnd> TrainRun::StopTogether(const train::PassEnd& end, const run::EndMessage& all) {
  ASSIGN_OR_RETURN(const auto payloads, run::AllGather(team_, rounds::StoppedIn(epoch()),
                                                       run::EncodePlace(Here(end.position, Meter::kWhole))));
  absl::Status saved;
  if (root_ != nullptr) {
    saved = SaveStopped(payloads);
    if (!saved.ok()) LOG(ERROR) << "not saved: " << saved.message();
  }
  RETURN_IF_ERROR(run::AllOk(team_, rounds::SavedWhereStopped(epoch()), saved));
  RETURN_IF_ERROR(memory_);
  if (all.signal() != 0) return RunEnd{RunEnd::Kind::kStopped, static_cast<int>(all.signal())};
  return RunEnd{all.out_of_time() ? RunEnd::Kind::kOutOfTime : RunEnd::Kind::kGivenUp};
}

absl::Status TrainRun::SaveStopped(const std::map<int, run::Bytes>& payloads) {
  RETURN_IF_ERROR(checkpoint_->Finish());
  WorkerPlaces places;
  for (const auto& [rank, payload] : payloads) {
    ASSIGN_OR_RETURN(places[rank], run::DecodePlace(payload));
  }
  if (places.size() == static_cast<size_t>(team_.size())) {
    RETURN_IF_ERROR(root_->SaveCheckpoint(job_.store(), StateOf(places)));
    reporter_.Note(absl::StrCat("stopped in epoch ", epoch(), ", ", run::AllBatches(places), " batches of ",
                                places.size(), " workers into it; saved, continue with --resume"));
  } else {
    reporter_.Note(absl::StrCat("stopped in epoch ", epoch(),
                                "; a worker was lost, so the save before it stays the "
                                "newest; continue with --resume"));
  }
  return root_->MarkInterrupted();
}

// The epoch is saved; only its validation is missing, and a resume begins with it.
absl::StatusOr<RunEnd> TrainRun::StopUnvalidated() {
  if (root_ != nullptr) {
    RETURN_IF_ERROR(root_->MarkInterrupted());
    reporter_.Note(absl::StrCat("stopped while validating epoch ", epoch() - 1,
                                ", which is saved; continue with: ", settings::ResumeCommand(job_.args)));
  }
  return RunEnd{RunEnd::Kind::kStopped, validation_signal_};
}

// The first worker's meter becomes the job's.
absl::Status TrainRun::MergeMeters() {
  if (job_.alone()) return absl::OkStatus();
  const auto round = rounds::MetricsOf(rounds::EpochName(epoch()));
  ASSIGN_OR_RETURN(const auto meters, run::AllGather(team_, round, meter_->Serialize()));
  if (!team_.chief()) return absl::OkStatus();
  for (const auto& [rank, meter] : meters)
    if (rank != 0 || team_.Completed(round))
      RETURN_IF_ERROR(base::Annotate(meter_->Merge(meter), absl::StrCat("metrics of worker ", rank)));
  return absl::OkStatus();
}

absl::Status TrainRun::FinishEpoch(const train::PassEnd& end) {
  RETURN_IF_ERROR(MergeMeters());
  train::EpochReport report = meter_->Epoch("epoch");
  report.bad_lines = data_.dataset->progress().bad_lines;
  reporter_.Epoch(report);
  if (job_.run.runner.dataset_debug) ReportProfile(data_.dataset->progress(), report.seconds);
  if (bad_rows_ > 0 || bad_dense_ > 0)
    LOG(WARNING) << bad_rows_ << " row gradients and " << bad_dense_
                 << " dense gradients of this process so far held NaN or Inf; " << WhatBecomesOfThem();
  absl::Status saved;
  if (checkpoint_ != nullptr) saved = checkpoint_->Finish();
  const auto round = rounds::SavedEpoch(epoch());
  if (team_.chief() && saved.ok() && !team_.Completed(round))
    saved = base::Annotate(
        root_->SaveEpoch(epoch(), job_.store(), StateAt(end.position, checkpoint::EpochState::kFinished)),
        absl::StrCat("saving epoch ", epoch()));
  RETURN_IF_ERROR(run::AllOk(team_, round, saved));
  last_save_ = std::chrono::steady_clock::now();
  steps_since_save_ = 0;
  if (checkpoint_ != nullptr) checkpoint_->Saved();
  return absl::OkStatus();
}

std::string TrainRun::WhatBecomesOfThem() const {
  const bool clips = job_.run.runner.nan_policy == table::NanPolicy::kClip;
  return absl::StrCat("runner.nan_policy ", clips ? "clip takes such elements for 0" : "skip leaves such updates out",
                      ". Try a lower learning rate or hyper_parameters.clip_by_norm, and look for huge input values");
}

// The first of a run is reported at once: it may be long until its epoch ends.
void TrainRun::CountBadGradients(const train::StepResult& result) {
  if (result.bad_rows == 0 && !result.bad_dense) return;
  if (bad_rows_ == 0 && bad_dense_ == 0)
    LOG(WARNING) << "epoch " << epoch() << ", batch " << result.batch->index << ": " << result.bad_rows
                 << " row gradients" << (result.bad_dense ? " and the dense gradient" : "") << " hold NaN or Inf; "
                 << WhatBecomesOfThem();
  bad_rows_ += result.bad_rows;
  bad_dense_ += result.bad_dense ? 1 : 0;
}

// Seconds of the reading threads and of the steps that waited for them.
void TrainRun::ReportProfile(const data::Progress& progress, double seconds) {
  reporter_.Note(absl::StrFormat(
      "dataset profile of epoch %d (%.2f s): read %.2f s, parse %.2f s, blocked %.2f s, merge %.2f s, waited for data "
      "%.2f s; %d samples, %d bad lines",
      epoch(), seconds, progress.read_seconds, progress.parse_seconds, progress.blocked_seconds, progress.merge_seconds,
      progress.wait_seconds, progress.samples, progress.bad_lines));
}

// The epoch is saved before it is validated, so its save holds the best of the epochs before it: whoever resumes after
// it validates it (again), and goes on as if there had been no stop.
absl::StatusOr<TrainRun::AfterEpoch> TrainRun::ValidateTogether(const run::Round<run::ValidatedMessage>& round,
                                                                std::optional<uint64_t> epoch) {
  AfterEpoch after = run::ValidatedMessage::GO_ON;
  if (epoch.has_value() && validation_.dataset != nullptr && !team_.Completed(round)) {
    ASSIGN_OR_RETURN(after, Validate(*epoch));
  }
  run::ValidatedMessage mine;
  mine.set_after(after);
  if (after == run::ValidatedMessage::STOPPED) mine.set_signal(static_cast<uint32_t>(StopSignal::Requested()));
  run::PutBest(best_, mine);
  ASSIGN_OR_RETURN(const run::ValidatedMessage validated, run::Broadcast(team_, round, mine));
  if (team_.chief()) best_ = run::BestFrom(validated);
  validation_signal_ = static_cast<int>(validated.signal());
  return validated.after();
}

absl::StatusOr<TrainRun::AfterEpoch> TrainRun::Validate(uint64_t epoch) {
  struct Observer : train::PassObserver {
    explicit Observer(uint64_t epoch) : meter(epoch) {}
    StepAction AfterStep(const Step& step) override {
      meter.Add(step);
      return StopSignal::Requested() != 0 ? StepAction::kStop : StepAction::kGoOn;
    }
    absl::Status AtPause(const base::DataPosition&) override { return absl::OkStatus(); }
    absl::Status AtEnd(const train::PassEnd&) override { return absl::OkStatus(); }
    absl::Status OnBadLoss(const data::Batch&, absl::Status status) override { return status; }
    bool StopsHere() override { return false; }
    bool StopAsked() override { return StopSignal::Requested() != 0; }
    train::PassMeter meter;
  } observer(epoch);
  auto end = trainer_->RunPass(*validation_.dataset, base::StepKind::kInfer, {.pass = epoch}, 0, observer);
  if (!end.ok()) return base::Annotate(end.status(), absl::StrCat("validating epoch ", epoch));
  if (!end->complete) return run::ValidatedMessage::STOPPED;
  const train::EpochReport report = observer.meter.Epoch("validation of epoch");
  reporter_.Epoch(report);
  const double score = report.metrics.auc.value_or(-report.loss);
  if (!best_.has_value() || score > best_->score) best_ = run::BestEpoch{epoch, score};
  RETURN_IF_ERROR(root_->MarkBest(best_->epoch));
  const int64_t patience = job_.run.runner.early_stop;
  const uint64_t since = epoch - best_->epoch;
  if (patience <= 0 || since < static_cast<uint64_t>(patience)) return run::ValidatedMessage::GO_ON;
  reporter_.Note(
      absl::StrCat("early stop: no better validation for ", since, " epochs; the best is epoch ", best_->epoch));
  return run::ValidatedMessage::STOP_EARLY;
}

absl::Status TrainRun::SaveAndStop(const train::PassEnd& end, const char* why) {
  RETURN_IF_ERROR(root_->SaveCheckpoint(job_.store(), StateAt(end.position, checkpoint::EpochState::kRunning)));
  RETURN_IF_ERROR(root_->MarkInterrupted());
  reporter_.Note(absl::StrCat(why, " in epoch ", epoch(), " at batch ", end.position.low,
                              "; saved, continue with: ", settings::ResumeCommand(job_.args)));
  return absl::OkStatus();
}

checkpoint::RunState TrainRun::StateAt(const base::DataPosition& position, checkpoint::EpochState epoch_state) const {
  checkpoint::RunState state;
  state.epoch = epoch();
  state.epoch_state = epoch_state;
  state.position = position;
  state.step = session_.first_step() + position.batches();
  state.settings_hash = data_.settings_hash;
  if (epoch_state == checkpoint::EpochState::kRunning) state.blobs[run::kMeterBlob] = meter_->Serialize();
  run::PutBest(best_, state);
  return state;
}

// The save's name counts the batches of all workers, so that every one has another.
checkpoint::RunState TrainRun::StateOf(const WorkerPlaces& places) const {
  checkpoint::RunState state =
      StateAt({.pass = epoch(), .low = run::AllBatches(places)}, checkpoint::EpochState::kRunning);
  state.step = session_.first_step() + run::MostBatches(places);
  WorkerPlaces kept = places;
  kept[0].meter = std::exchange(state.blobs[run::kMeterBlob], "");
  state.blobs.erase(run::kMeterBlob);
  run::PutPlaces(kept, state);
  return state;
}

WorkerPlace TrainRun::Here(const base::DataPosition& position, Meter meter) const {
  WorkerPlace place{position, data_.settings_hash, ""};
  if (team_.chief()) return place;  // its own it has
  place.meter = meter_->Serialize();
  if (meter == Meter::kSmall && place.meter.size() > kSmallMeter) place.meter.clear();
  return place;
}

train::PassObserver::StepAction TrainRun::AfterStep(const Step& step) {
  meter_->Add(step);
  CountBadGradients(step.result);
  if (progress_ != nullptr) progress_->Add(step);
  if (job_.metrics != nullptr) job_.metrics->Add(step);
  ++steps_since_save_;
  const auto interval = static_cast<uint64_t>(job_.run.runner.print_interval);
  if (reporter_.style() == train::ReportStyle::kTerminal)
    reporter_.Live(Complete(meter_->Interval()), data_.dataset->progress());
  if (meter_->batches() % interval == 0) {
    const train::IntervalReport report = Complete(meter_->TakeInterval());
    if (job_.metrics != nullptr) job_.metrics->Report(report);
    reporter_.Interval(report);
  }
  const bool due = CheckpointIsDue();
  if (!MustStop() && !StopRequested()) return due ? StepAction::kPause : StepAction::kGoOn;
  team_.AskToStop();
  if (!StopsAtBarrier()) return StepAction::kStop;
  return due ? StepAction::kPause : StopIsLate() ? StepAction::kStop : StepAction::kGoOn;
}

// With what the heartbeats tell of the whole job.
train::IntervalReport TrainRun::Complete(train::IntervalReport report) const {
  if (progress_ != nullptr) report.cluster = progress_->Cluster();
  return report;
}

// In sync with others: steps that are made without those that have stopped would be others than without a stop.
bool TrainRun::StopsAtBarrier() const { return checkpoint_ != nullptr && checkpoint_->agrees_on_stops(); }

bool TrainRun::StopsHere() { return StopsAtBarrier() && checkpoint_->stop_agreed(); }

bool TrainRun::StopAsked() { return StopRequested() && (!StopsAtBarrier() || StopIsLate()); }

// Here or elsewhere.
bool TrainRun::StopRequested() const { return team_.stop_asked() || IsOver(); }

// Whether a stop that was requested has waited for its barrier for too long.
bool TrainRun::StopIsLate() {
  base::MutexLock lock(stop_mu_);
  const auto now = std::chrono::steady_clock::now();
  if (!stop_requested_.has_value()) stop_requested_ = now;
  if (now - *stop_requested_ < kStopTimeout) return false;
  LOG_FIRST_N(WARNING, 1) << "stops without having met the others, for " << kStopTimeout.count()
                          << " s: a resumed run may differ from one that was not stopped";
  return true;
}

bool TrainRun::IsOver() const { return StopSignal::Requested() != 0 || IsOutOfTime(); }

bool TrainRun::IsOutOfTime() const {
  const double max_minutes = job_.run.runner.max_minutes;
  return max_minutes > 0 && MinutesSince(start_) >= max_minutes;
}

bool TrainRun::MustStop() {
  if (IsOver()) return true;
  if (job_.run.runner.max_memory > 0 && steps_since_save_ % 20 == 1) memory_ = CheckMemory();
  return !memory_.ok();
}

absl::Status TrainRun::CheckMemory() const {
  const uint64_t resident = metrics::ResidentBytes();
  const auto limit = static_cast<uint64_t>(job_.run.runner.max_memory);
  if (resident < limit) return absl::OkStatus();
  const std::string rows = job_.alone() ? absl::StrCat("; the tables have ", job_.embedded().rows(), " rows") : "";
  return absl::ResourceExhaustedError(absl::StrCat("the process holds ", Gigabytes(resident),
                                                   ", the limit runner.max_memory is ", Gigabytes(limit), rows,
                                                   ". Raise the limit, or use a smaller dimension"));
}

bool TrainRun::CheckpointIsDue() {
  if (checkpoint_ != nullptr) return checkpoint_->PauseAfterStep();
  const settings::RunnerOptions& runner = job_.run.runner;
  if (runner.checkpoint_steps > 0 && steps_since_save_ >= static_cast<uint64_t>(runner.checkpoint_steps)) return true;
  return runner.checkpoint_minutes > 0 && MinutesSince(last_save_) >= runner.checkpoint_minutes;
}

absl::Status TrainRun::AtPause(const base::DataPosition& position) {
  if (checkpoint_ != nullptr) {
    const StopRequest stop = StopsAtBarrier() && StopRequested() ? StopRequest::kStop : StopRequest::kNone;
    return checkpoint_->WaitAtBarrier(Attendance::kPaused, stop, Here(position, Meter::kSmall)).status();
  }
  absl::Status status = root_->SaveCheckpoint(job_.store(), StateAt(position, checkpoint::EpochState::kRunning));
  last_save_ = std::chrono::steady_clock::now();
  steps_since_save_ = 0;
  if (absl::IsResourceExhausted(status)) {  // a full disk costs a checkpoint, not the run
    LOG(ERROR) << "checkpoint skipped, training goes on: " << status.message();
    return absl::OkStatus();
  }
  return base::Annotate(status, "checkpoint");
}

// The others may be waiting for this worker at a barrier.
absl::Status TrainRun::AtEnd(const train::PassEnd& end) {
  if (checkpoint_ == nullptr) return absl::OkStatus();
  const WorkerPlace here = Here(end.position, Meter::kSmall);
  auto after = checkpoint_->stop_agreed() ? AfterBarrier::kStop : AfterBarrier::kGoOn;
  while (after == AfterBarrier::kGoOn) {
    const StopRequest stop = StopsAtBarrier() && StopRequested() ? StopRequest::kStop : StopRequest::kNone;
    ASSIGN_OR_RETURN(after, checkpoint_->WaitAtBarrier(Attendance::kEnded, stop, here));
  }
  return absl::OkStatus();
}

absl::Status TrainRun::OnBadLoss(const data::Batch& batch, absl::Status status) {
  const std::string path =
      absl::StrCat(job_.run.runner.model_save_path, "/bad_batch-", epoch(), "-", batch.index, ".txt");
  absl::Status written = base::WriteFileAtomically(path, BatchText(batch, data_.schema, batch.size));
  const std::string where = written.ok() ? absl::StrCat("the batch is kept in ", path)
                                         : absl::StrCat("and the batch could not be kept: ", written.message());
  const std::string input = HugeInput(batch, data_.schema);
  const std::string advice = input.empty() ? "Try a lower learning rate or hyper_parameters.clip_by_norm"
                                           : absl::StrCat(input, ": scale or clip such values in the data");
  return absl::AbortedError(absl::StrCat("epoch ", epoch(), ": ", status.message(), "; ", where, ". ", advice));
}

}  // namespace regatta::worker
