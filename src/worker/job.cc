#include "worker/job.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/hash.h"
#include "base/params.h"
#include "data/dataset_factory.h"
#include "data/empty_dataset.h"
#include "data/file_list.h"
#include "model/zoo.h"
#include "worker/model_tables.h"
#include "worker/stop_signal.h"
#include "worker/worker_data.h"

namespace regatta::worker {
namespace {

uint64_t SettingsHash(const data::DatasetOptions& options) {
  uint64_t hash = base::Combine64(options.seed, static_cast<uint64_t>(options.batch_size));
  hash = base::Combine64(hash, static_cast<uint64_t>(options.kind) * 2 + static_cast<uint64_t>(options.shuffle));
  hash = base::Combine64(hash, base::HashBytes(options.pipe_command));
  for (const std::string& file : options.files) {
    struct stat info {};
    stat(file.c_str(), &info);
    hash = base::Combine64(hash, base::HashBytes(std::filesystem::path(file).filename().string()));
    hash = base::Combine64(hash, static_cast<uint64_t>(info.st_size));
  }
  return hash;
}

absl::StatusOr<std::vector<std::string>> FilesOf(const Job& job, DataUse use, const std::string& path) {
  const settings::RunnerOptions& runner = job.run.runner;
  if (job.alone() || use == DataUse::kTest) return data::ExpandFiles(path);
  if (!runner.split_file_list) {
    ASSIGN_OR_RETURN(std::vector<std::string> files, data::ExpandFiles(path));
    if (job.fleet->worker_num() > 1)
      LOG(INFO) << "worker " << job.fleet->worker_index() << " reads all " << files.size()
                << " files, as every worker does: an epoch is " << job.fleet->worker_num()
                << " times the data (runner.split_file_list: True gives each its share)";
    return files;
  }
  return FilesOfWorker(
      *job.fleet, path,
      runner.file_split == settings::FileSplit::kMod ? data::FileSplit::kMod : data::FileSplit::kContiguous);
}

base::LossPolicy LossPolicyOf(const Job& job) {
  const settings::RunnerOptions& runner = job.run.runner;
  if (runner.on_worker_loss.has_value()) return *runner.on_worker_loss;
  const bool can = runner.ack != base::Ack::kMemory;
  return can && job.fleet->place().workers_return ? base::LossPolicy::kAwait : base::LossPolicy::kFail;
}

fleet::WorkerOptions WorkerOptionsOf(const Job& job) {
  const settings::RunnerOptions& runner = job.run.runner;
  fleet::WorkerOptions options;
  options.threads = static_cast<int>(runner.thread_num);
  options.mode = runner.sync_mode;
  options.tables = job.table_configs;
  options.sparse_lanes = static_cast<int>(runner.lanes);
  options.short_rows = runner.row_precision == settings::RowPrecision::kBfloat16;
  options.staleness = static_cast<uint64_t>(runner.staleness);
  options.half_async_merge = static_cast<int>(runner.half_async_merge);
  options.geo_interval = static_cast<uint64_t>(runner.geo_step);
  options.nan_policy = runner.nan_policy;
  options.on_loss = LossPolicyOf(job);
  options.worker_wait = std::chrono::seconds(runner.worker_wait_timeout);
  options.ack = runner.ack;
  // Where all come to a barrier.
  options.settings = {{"runner.epochs", absl::StrCat(runner.epochs)},
                      {"runner.checkpoint_steps", absl::StrCat(runner.checkpoint_steps)},
                      {"runner.checkpoint_minutes", absl::StrCat(runner.checkpoint_minutes)}};
  // A worker that comes back is told its place by the number of the batch.
  if (options.on_loss == base::LossPolicy::kAwait)
    options.settings["runner.train_batch_size"] = absl::StrCat(runner.train_batch_size);
  // The configuration's word goes before the environment's, and that before the default.
  if (job.config.Has("runner.server_wait_timeout") || !job.fleet->place().server_wait_timeout.has_value())
    options.wait_timeout = std::chrono::duration<double>(static_cast<double>(runner.server_wait_timeout));
  options.cancelled = [] { return StopSignal::Requested() != 0; };
  return options;
}

}  // namespace

checkpoint::ModelIdentity Job::identity() const {
  constexpr std::string_view kPrefix = "hyper_parameters.";
  checkpoint::ModelIdentity identity{"zoo", run.model, {}, SavedSchemaOf(model->spec().schema)};
  for (const base::ConfigUse& use : config.Effective())
    if (use.effect != base::ConfigUse::Effect::kNone && use.path.starts_with(kPrefix))
      identity.hyper_parameters[use.path.substr(kPrefix.size())] = use.json;
  return identity;
}

absl::StatusOr<std::unique_ptr<Job>> MakeJob(const settings::TrainArgs& args, const cluster::ClusterSpec& place) {
  ASSIGN_OR_RETURN(base::Config config, settings::LoadConfig(args.config, args.overrides));
  auto job = std::make_unique<Job>(args, std::move(config));
  ASSIGN_OR_RETURN(job->fleet, fleet::Fleet::Init(place));
  ASSIGN_OR_RETURN(
      job->run, settings::ParseRunConfig(
                    job->config, job->alone() ? settings::Deployment::kStandalone : settings::Deployment::kWithServers,
                    job->remarks));
  base::Params params(job->config, "hyper_parameters");
  ASSIGN_OR_RETURN(job->model, model::MakeModel(job->run.model, params));
  ASSIGN_OR_RETURN(job->table_configs, ConfigureTables(job->model->spec(), job->run, job->config, job->remarks));
  RETURN_IF_ERROR(settings::CheckNoUnknown(job->config, job->remarks));
  RETURN_IF_ERROR(settings::CheckDataIsNamed(job->run.runner, args));
  if (args.verb == settings::Verb::kInfer) job->table_configs = job->table_configs.WeightsOnly();
  if (!args.trace.empty()) job->tracer = std::make_unique<metrics::Tracer>();
  if (!job->alone()) {
    if (place.threads.has_value() && !job->config.Has("runner.thread_num")) job->run.runner.thread_num = *place.threads;
    return job;
  }
  RETURN_IF_ERROR(job->fleet->InitWorker(WorkerOptionsOf(*job)));
  return job;
}

absl::Status JoinServers(Job& job) {
  if (job.alone()) return absl::OkStatus();
  RETURN_IF_ERROR(job.fleet->InitWorker(WorkerOptionsOf(job)));
  if (job.metrics != nullptr) job.metrics->Show(job.fleet->worker());
  return absl::OkStatus();
}

absl::StatusOr<JobData> OpenData(const Job& job, DataUse use) {
  const settings::RunnerOptions& runner = job.run.runner;
  const bool train = use == DataUse::kTrain;
  const std::string& path = train ? runner.train_data_dir : runner.test_data_dir;
  const char* key = train ? settings::kTrainData : settings::kTestData;
  JobData result;
  auto files = FilesOf(job, use, path);
  if (!files.ok()) return base::Annotate(files.status(), key);
  result.files = *std::move(files);
  if (result.files.empty()) {
    result.dataset = std::make_unique<data::EmptyDataset>();
    return result;
  }

  data::DatasetOptions options;
  const bool in_memory = train && runner.reader_type == settings::ReaderType::kInMemoryDataset;
  options.kind = in_memory ? data::DatasetKind::kInMemory : data::DatasetKind::kQueue;
  options.shuffle = in_memory ? data::Shuffle::kLocal : data::Shuffle::kNone;
  options.files = result.files;
  options.format = train ? runner.train_reader_path : runner.infer_reader_path;
  options.schema = job.model->spec().DataSchema();
  if (use == DataUse::kTest && job.args.no_labels) {
    options.schema.label_use = data::LabelUse::kAbsent;  // weights and users are for losses and metrics
  } else {
    options.schema.weight_slot = runner.sample_weight_slot;
    options.schema.user_slot = runner.user_slot;
  }
  options.schema.id_space = runner.id_space;
  result.schema = options.schema;
  options.batch_size = static_cast<int>(train ? runner.train_batch_size : runner.infer_batch_size);
  options.readers = static_cast<int>(runner.reader_threads > 0 ? runner.reader_threads : runner.thread_num);
  options.seed = static_cast<uint64_t>(runner.seed);
  options.pipe_command = runner.pipe_command;
  options.pipe_shell = runner.pipe_shell ? data::PipeShell::kYes : data::PipeShell::kNo;
  options.working_folder = job.config.folder();
  if (runner.max_bad_lines >= 0) options.max_bad_lines = static_cast<uint64_t>(runner.max_bad_lines);
  options.max_line_bytes = static_cast<uint64_t>(runner.max_line_bytes);
  result.settings_hash = SettingsHash(options);
  if (train) options.quarantine_path = runner.model_save_path + "/bad_lines.txt";
  ASSIGN_OR_RETURN(result.dataset, data::MakeDataset(options));
  return result;
}

absl::StatusOr<TrainData> OpenTrainData(const Job& job) {
  TrainData data;
  ASSIGN_OR_RETURN(data.train, OpenData(job, DataUse::kTrain));
  if (job.fleet->is_first_worker() && !job.run.runner.test_data_dir.empty()) {
    ASSIGN_OR_RETURN(data.validation, OpenData(job, DataUse::kTest));
  }
  return data;
}

}  // namespace regatta::worker
