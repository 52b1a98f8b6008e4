// What a run is made of: the one place where configuration, model, tables, mode and data meet.
// Thread-safety: built and used by the main thread; the trainer's threads use the parts.
#pragma once

#include <memory>
#include <string>

#include "base/config.h"
#include "base/status.h"
#include "client/local_client.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "metrics/trace.h"
#include "model/model.h"
#include "runner/run_config.h"
#include "runner/train_args.h"
#include "worker/model_tables.h"

namespace regatta::worker {

struct Job {
  Job(const runner::TrainArgs& args_in, base::Config config_in) : args(args_in), config(std::move(config_in)) {}

  runner::TrainArgs args;
  base::Config config;
  runner::RunConfig run;
  runner::Remarks remarks;
  std::unique_ptr<model::Model> model;
  TableConfigs table_configs;
  ModelTableSet tables;
  std::unique_ptr<client::LocalClient> client;
  std::unique_ptr<comm::Communicator> communicator;
  std::unique_ptr<metrics::Tracer> tracer;  // null where --trace is not given
};

// Reads the configuration and builds all of it but the data. Errors are the user's (exit 2).
absl::StatusOr<std::unique_ptr<Job>> MakeJob(const runner::TrainArgs& args);

enum class DataUse { kTrain, kTest };

struct JobData {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<std::string> files;
  uint64_t settings_hash = 0;  // of all that decides which batch is batch k
};

// Errors are the data's (exit 1).
absl::StatusOr<JobData> OpenData(const Job& job, DataUse use);

}  // namespace regatta::worker
