#include "worker/job.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/hash.h"
#include "base/params.h"
#include "comm/local.h"
#include "data/dataset_options.h"
#include "data/file_list.h"
#include "model/zoo.h"

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

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> MakeJob(const runner::TrainArgs& args) {
  ASSIGN_OR_RETURN(base::Config config, runner::LoadConfig(args.config, args.overrides));
  auto job = std::make_unique<Job>(args, std::move(config));
  ASSIGN_OR_RETURN(job->run, runner::ParseRunConfig(job->config, job->remarks));
  base::Params params(job->config, "hyper_parameters");
  auto model = model::MakeModel(job->run.model, params);
  if (!model.ok())
    return absl::IsNotFound(model.status()) ? base::Annotate(model.status(), args.config) : model.status();
  job->model = *std::move(model);
  ASSIGN_OR_RETURN(job->table_configs, ConfigureTables(job->model->spec(), job->run, job->config, job->remarks));
  RETURN_IF_ERROR(runner::CheckNoUnknown(job->config, job->remarks));
  ASSIGN_OR_RETURN(job->tables, ModelTableSet::Create(job->table_configs));
  job->client =
      std::make_unique<client::LocalClient>(job->tables.sparse(), job->tables.dense(), job->run.runner.nan_policy);
  job->communicator = std::make_unique<comm::Local>(*job->client, static_cast<int>(job->run.runner.thread_num));
  if (!args.trace.empty()) job->tracer = std::make_unique<metrics::Tracer>();
  return job;
}

absl::StatusOr<JobData> OpenData(const Job& job, DataUse use) {
  const runner::RunnerOptions& runner = job.run.runner;
  const bool train = use == DataUse::kTrain;
  const std::string& path = train ? runner.train_data_dir : runner.test_data_dir;
  const char* key = train ? "runner.train_data_dir" : "runner.test_data_dir";
  if (path.empty()) return absl::InvalidArgumentError(absl::StrCat(key, " is not set: where is the data?"));
  JobData result;
  auto files = data::ExpandFiles(path);
  if (!files.ok()) return base::Annotate(files.status(), key);
  result.files = *std::move(files);

  data::DatasetOptions options;
  const bool in_memory = train && runner.reader_type == runner::ReaderType::kInMemoryDataset;
  options.kind = in_memory ? data::DatasetKind::kInMemory : data::DatasetKind::kQueue;
  options.shuffle = in_memory ? data::Shuffle::kLocal : data::Shuffle::kNone;
  options.files = result.files;
  options.format = train ? runner.train_reader_path : runner.infer_reader_path;
  options.schema = job.model->spec().schema;
  options.schema.weight_slot = runner.sample_weight_slot;
  options.schema.user_slot = runner.user_slot;
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

}  // namespace regatta::worker
