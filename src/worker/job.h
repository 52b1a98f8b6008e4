// What a run is made of: the one place where configuration, model, tables, mode and data meet.
// Thread-safety: built and used by the main thread; the trainer's threads use the parts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "checkpoint/model_identity.h"
#include "checkpoint/model_store.h"
#include "cluster/cluster_spec.h"
#include "data/dataset.h"
#include "fleet/embedded_tables.h"
#include "fleet/fleet.h"
#include "metrics/trace.h"
#include "model/model.h"
#include "settings/run_config.h"
#include "settings/train_args.h"
#include "worker/run_metrics.h"

namespace regatta::worker {

struct Job {
  Job(const settings::TrainArgs& args_in, base::Config config_in) : args(args_in), config(std::move(config_in)) {}

  settings::TrainArgs args;
  base::Config config;
  settings::RunConfig run;
  settings::Remarks remarks;
  std::unique_ptr<model::Model> model;
  table::ModelConfig table_configs;
  std::unique_ptr<metrics::Tracer> tracer;  // null where --trace is not given
  std::unique_ptr<RunMetrics> metrics;      // null where --metrics_port is not given

  std::unique_ptr<fleet::Fleet> fleet;

  bool alone() const { return fleet->alone(); }
  // The tables of a process that is alone.
  fleet::EmbeddedTables& embedded() const { return *fleet->embedded(); }
  checkpoint::ModelStore& store() const { return fleet->model(); }
  // As saves name the model.
  checkpoint::ModelIdentity identity() const;
};

// Reads the configuration and builds all of it but the data and the connections. Errors are the user's (exit 2).
// `place` is a worker or alone.
absl::StatusOr<std::unique_ptr<Job>> MakeJob(const settings::TrainArgs& args, const cluster::ClusterSpec& place);

// Waits for the servers and joins the job; alone there is nothing to do. Errors are the cluster's (exit 1).
absl::Status JoinServers(Job& job);

enum class DataUse { kTrain, kTest };

struct JobData {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<std::string> files;
  data::Schema schema;
  uint64_t settings_hash = 0;  // of all that decides which batch is batch k
};

// Errors are the data's (exit 1). Needs no servers.
absl::StatusOr<JobData> OpenData(const Job& job, DataUse use);

struct TrainData {
  JobData train;
  JobData validation;  // of the first worker; its dataset is null where nothing validates
};

absl::StatusOr<TrainData> OpenTrainData(const Job& job);

}  // namespace regatta::worker
