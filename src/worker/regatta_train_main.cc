// The trainer's executable: `regatta train`, `infer` and `config` end up here.
#include <glog/logging.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/failpoint.h"
#include "base/guarded_run.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "base/standard_output.h"
#include "cluster/environment.h"
#include "metrics/exporter.h"
#include "metrics/process_load.h"
#include "settings/key_table.h"
#include "settings/security.h"
#include "settings/train_args.h"
#include "wire/certificate.h"
#include "wire/grpc_log.h"
#include "worker/dry_run.h"
#include "worker/infer_run.h"
#include "worker/job.h"
#include "worker/process.h"
#include "worker/stop_signal.h"
#include "worker/train_run.h"

namespace regatta::worker {
namespace {

enum Exit : int { kDone = 0, kFailed = 1, kUsage = 2 };

int Fail(const absl::Status& status, Exit code) {
  std::fflush(stdout);
  std::fprintf(stderr, "regatta: error: %s\n", base::PrintableLines(std::string(status.message())).c_str());
  return code;
}

train::ReportStyle StyleFor(const settings::TrainArgs& args) {
  if (args.json) return train::ReportStyle::kJson;
  return isatty(STDOUT_FILENO) ? train::ReportStyle::kTerminal : train::ReportStyle::kLines;
}

int Train(Job& job, train::Reporter& reporter) {
  auto data = OpenTrainData(job);  // what is not there will not come with the servers
  if (!data.ok()) return Fail(data.status(), kFailed);
  if (!job.alone()) {
    StopSignal::Begin(StopSignal::Work::kJoin);
    if (const absl::Status joined = JoinServers(job); !joined.ok()) {
      if (StopSignal::Requested() == 0) return Fail(joined, kFailed);
      std::fprintf(stderr, "regatta: stopped while joining the servers: there was nothing to save\n");
      return 128 + StopSignal::Requested();
    }
  }
  StopSignal::Begin(job.alone() ? StopSignal::Work::kTrain : StopSignal::Work::kTrainTogether);
  const absl::StatusOr<run::RunEnd> end = TrainRun(job, *std::move(data), reporter).Run();
  job.fleet->StopWorker(end.status());
  if (!end.ok()) return Fail(end.status(), kFailed);
  if (end->kind == run::RunEnd::Kind::kGivenUp)
    return Fail(absl::AbortedError("another worker has given up; its log says why"), kFailed);
  if (end->kind != run::RunEnd::Kind::kStopped) return kDone;
  if (StopSignal::Requested() == 0)
    std::fprintf(stderr, "regatta: stopped, because another worker got signal %d\n", end->signal);
  return 128 + end->signal;
}

int Infer(Job& job, train::Reporter& reporter) {
  StopSignal::Begin(StopSignal::Work::kInfer);
  const absl::Status status = InferRun(job, reporter).Run();
  if (StopSignal::Requested() != 0) return 128 + StopSignal::Requested();
  return status.ok() ? kDone : Fail(status, kFailed);
}

int RunVerb(Job& job) {
  train::Reporter reporter(StyleFor(job.args), job.run.runner.use_auc ? train::ReportAuc::kYes : train::ReportAuc::kNo);
  return job.args.verb == settings::Verb::kTrain ? Train(job, reporter) : Infer(job, reporter);
}

// Only training has a place in a cluster; the other verbs, and questions about training, run where they are asked.
absl::StatusOr<cluster::ClusterSpec> PlaceOf(const settings::TrainArgs& args) {
  if (args.verb != settings::Verb::kTrain || args.dry_run) return cluster::ClusterSpec{};
  ASSIGN_OR_RETURN(base::Config config, settings::LoadConfig(args.config, args.overrides));
  ASSIGN_OR_RETURN(const cluster::Access access, settings::ReadSecurity(config, args));
  ASSIGN_OR_RETURN(cluster::ClusterSpec place, cluster::ReadEnvironment(cluster::ProcessEnvironment(), access));
  RETURN_IF_ERROR(cluster::CheckAvailable(place));
  if (place.role == cluster::Role::kServer)
    return absl::InvalidArgumentError(
        "the environment says that this process is a server: start it with regatta train");
  if (place.credentials != nullptr) RETURN_IF_ERROR(wire::CheckCertificate(*place.credentials));
  return place;
}

// Null where nobody asked for it.
absl::StatusOr<std::unique_ptr<metrics::Exporter>> StartExporter(Job& job) {
  std::optional<int> port = job.args.metrics_port;
  if (!port.has_value() && job.args.verb == settings::Verb::kTrain) {
    ASSIGN_OR_RETURN(port, cluster::ReadMetricsPort(cluster::ProcessEnvironment()));
  }
  if (!port.has_value()) return nullptr;
  job.metrics = std::make_unique<RunMetrics>(job.model->spec());
  if (job.alone()) job.metrics->Show(&job.embedded());
  ASSIGN_OR_RETURN(auto exporter, metrics::Exporter::Start(*port, [&job](metrics::Exposition& out) {
                     job.metrics->Collect(out);
                     metrics::CollectProcess(out);
                   }));
  LOG(INFO) << "metrics: " << exporter->url();
  return exporter;
}

// Before the work, so that a path that cannot be written is found then. Null where nobody asked for a trace.
absl::StatusOr<std::unique_ptr<base::OutputFile>> OpenTrace(const Job& job) {
  if (job.tracer == nullptr) return nullptr;
  return base::OutputFile::Create(job.args.trace);
}

int WriteTrace(const Job& job, base::OutputFile* trace, int code) {
  if (trace == nullptr) return code;
  absl::Status status = trace->Append(job.tracer->ToJson());
  if (status.ok()) status = trace->Commit(base::OutputFile::Durability::kSynced);
  return status.ok() || code != kDone ? code : Fail(status, kFailed);
}

int Main(int argc, char** argv) {
  if (argc < 2) return Fail(absl::InvalidArgumentError("want a verb: train, infer or config"), kUsage);
  const auto verb = settings::ParseVerb(argv[1]);
  if (!verb.ok()) return Fail(verb.status(), kUsage);
  const auto args = settings::ParseTrainArgs(*verb, argc - 1, argv + 1);
  if (!args.ok()) return Fail(args.status(), kUsage);
  if (!args->help.empty()) {
    std::fputs(args->help.c_str(), stdout);
    return kDone;
  }
  if (args->keys) {
    std::fputs(settings::KeysMarkdown().c_str(), stdout);
    return kDone;
  }
  const auto place = PlaceOf(*args);
  if (!place.ok()) return Fail(place.status(), kUsage);
  for (const std::string& note : place->notes) LOG(INFO) << note;
  auto job = MakeJob(*args, *place);
  if (!job.ok()) return Fail(job.status(), kUsage);
  for (const std::string& warning : (*job)->remarks.warnings) LOG(WARNING) << warning;
  if (*verb == settings::Verb::kConfig) {
    std::fputs(
        (args->json ? settings::ConfigJson((*job)->config) + "\n" : settings::ConfigText((*job)->config)).c_str(),
        stdout);
    return kDone;
  }
  if (args->dry_run) {
    const absl::Status status = DryRun(**job);
    return status.ok() ? kDone : Fail(status, kFailed);
  }
  for (const std::string& note : (*job)->remarks.notes) LOG(INFO) << note;
  const auto exporter = StartExporter(**job);  // ends before the job that it shows
  if (!exporter.ok()) return Fail(exporter.status(), kUsage);
  const auto trace = OpenTrace(**job);
  if (!trace.ok()) return Fail(trace.status(), kFailed);
  return WriteTrace(**job, trace->get(), RunVerb(**job));
}

}  // namespace
}  // namespace regatta::worker

int main(int argc, char** argv) {
  regatta::base::OpenStandardDescriptors();
  regatta::worker::PrepareProcess(argv);
  regatta::wire::LogThroughGlog();
  const regatta::worker::StopSignal signal;
  if (const char* failpoints = std::getenv("REGATTA_FAILPOINTS"); failpoints != nullptr) {
    if (const absl::Status status = regatta::base::ArmFailpoints(failpoints); !status.ok()) {
      std::fprintf(stderr, "regatta: error: REGATTA_FAILPOINTS: %s\n", std::string(status.message()).c_str());
      return 2;
    }
  }
  return regatta::base::RunGuarded(&regatta::worker::Main, argc, argv);
}
