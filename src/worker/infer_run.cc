#include "worker/infer_run.h"

#include <glog/logging.h>

#include "base/file.h"
#include "checkpoint/save_list.h"
#include "model/torch_net.h"
#include "run/metered_pass.h"
#include "worker/prediction_file.h"
#include "worker/stop_signal.h"

namespace regatta::worker {
namespace {

class InferPass : public run::MeteredPass {
 public:
  InferPass(uint64_t epoch, Job& job, const data::Dataset& dataset, train::Reporter& reporter,
            PredictionFile* predictions)
      : MeteredPass(epoch, job.model->spec(), [] { return StopSignal::Requested() != 0; }),
        interval_(static_cast<uint64_t>(job.run.runner.print_interval)),
        dataset_(dataset),
        reporter_(reporter),
        predictions_(predictions) {}

  StepAction AfterStep(const Step& step) override {
    const StepAction action = MeteredPass::AfterStep(step);
    if (predictions_ != nullptr && status.ok()) status = predictions_->Add(step.result);
    reporter_.Live(meter().Interval(), dataset_.progress());
    if (meter().batches() % interval_ == 0) reporter_.Interval(meter().TakeInterval());
    return status.ok() ? action : StepAction::kStop;
  }

  absl::Status status;

 private:
  const uint64_t interval_;
  const data::Dataset& dataset_;
  train::Reporter& reporter_;
  PredictionFile* const predictions_;
};

}  // namespace

InferRun::InferRun(Job& job, train::Reporter& reporter)
    : job_(job),
      reporter_(reporter),
      trainer_(model::TorchNets(*job.model, job.run.model), job.embedded().communicator(),
               {.threads = static_cast<int>(job.run.runner.thread_num), .tracer = job.tracer.get()}) {}

absl::Status InferRun::Run() {
  const settings::RunnerOptions& runner = job_.run.runner;
  ASSIGN_OR_RETURN(data_, OpenData(job_, DataUse::kTest));
  // A path that is a save itself is inferred alone.
  if (base::Exists(runner.infer_load_path + "/MANIFEST")) return InferEpoch(0, runner.infer_load_path);
  if (runner.infer_start_epoch >= runner.infer_end_epoch)
    return absl::InvalidArgumentError(absl::StrCat("runner.infer_start_epoch ", runner.infer_start_epoch,
                                                   " is not below runner.infer_end_epoch ", runner.infer_end_epoch,
                                                   ": there is no epoch to infer"));
  const std::vector<checkpoint::SaveInfo> saves = checkpoint::ListSaves(runner.infer_load_path);
  for (int64_t epoch = runner.infer_start_epoch; epoch < runner.infer_end_epoch; ++epoch) {
    if (StopSignal::Requested() != 0) break;
    for (const checkpoint::SaveInfo& s : saves)
      if (s.earlier_run && s.name == absl::StrCat(epoch))
        LOG(WARNING) << s.folder << " is of an earlier run than " << runner.infer_load_path << "/CURRENT";
    RETURN_IF_ERROR(InferEpoch(static_cast<uint64_t>(epoch), absl::StrCat(runner.infer_load_path, "/", epoch)));
  }
  if (StopSignal::Requested() != 0) return absl::CancelledError("stopped before the end");
  return absl::OkStatus();
}

absl::Status InferRun::InferEpoch(uint64_t epoch, const std::string& save) {
  auto reader = checkpoint::CheckpointReader::Open(save);
  if (!reader.ok())
    return base::Annotate(reader.status(), absl::StrCat("the save of epoch ", epoch,
                                                        " (runner.infer_load_path, infer_start_epoch, "
                                                        "infer_end_epoch)"));
  if (const auto& saved = reader->manifest().run.model; saved.has_value()) {
    const checkpoint::ModelIdentity wanted = job_.identity();
    RETURN_IF_ERROR(base::Annotate(checkpoint::CheckSameModel(*saved, wanted), save));
    for (const std::string& difference : checkpoint::IdentityDifferences(*saved, wanted))
      LOG(WARNING) << save << " was trained with other settings: " << difference;
  }
  RETURN_IF_ERROR(reader->LoadInto(job_.embedded().Fillable(), checkpoint::LoadKind::kInference));
  std::unique_ptr<PredictionFile> predictions;
  const std::string& path = job_.args.predictions;
  if (!path.empty()) {
    const bool many = job_.run.runner.infer_end_epoch - job_.run.runner.infer_start_epoch > 1;
    ASSIGN_OR_RETURN(predictions, PredictionFile::Create(many ? absl::StrCat(path, ".", epoch) : path, data_.schema));
  }
  InferPass pass(epoch, job_, *data_.dataset, reporter_, predictions.get());
  ASSIGN_OR_RETURN(const train::PassEnd end,
                   trainer_.RunPass(*data_.dataset, base::StepKind::kInfer, {.pass = 0}, 0, pass));
  RETURN_IF_ERROR(pass.status);
  if (!end.complete) return absl::OkStatus();
  train::EpochReport report = pass.meter().Epoch("infer epoch");
  report.bad_lines = data_.dataset->progress().bad_lines;
  report.all_metrics = true;
  reporter_.Epoch(report);
  return predictions == nullptr ? absl::OkStatus() : predictions->Commit();
}

}  // namespace regatta::worker
