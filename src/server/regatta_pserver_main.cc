// The server's executable: `regatta pserver`, and `regatta train` in the PSERVER role. It also asks servers for their
// status (`regatta status`) and makes credentials (`regatta credentials`), because it has gRPC and OpenSSL and
// `regatta` has not.
#include <glog/logging.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/freed_memory.h"
#include "base/guarded_run.h"
#include "base/printable.h"
#include "base/standard_output.h"
#include "cluster/credentials_args.h"
#include "cluster/environment.h"
#include "cluster/pserver_args.h"
#include "cluster/status_args.h"
#include "metrics/exporter.h"
#include "metrics/process_load.h"
#include "server/credentials_folder.h"
#include "server/ps_server.h"
#include "server/status_query.h"
#include "server/status_text.h"
#include "wire/certificate.h"
#include "wire/grpc_log.h"

namespace regatta::server {
namespace {

enum Exit : int { kDone = 0, kFailed = 1, kUsage = 2 };

PsServer* running = nullptr;
volatile sig_atomic_t stopped_by = 0;

// The first signal ends the server in order, the second at once.
void OnSignal(int signal) {
  if (stopped_by != 0 || running == nullptr) _exit(128 + signal);
  stopped_by = signal;
  running->Stop();
}

// Under nohup a lost terminal is ignored, and stays so.
void HandleSignals() {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

// A connection is a file, and gRPC 1.51 stops listening for good when there are none left: as many as the system
// allows.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Fail(const absl::Status& status, Exit code) {
  std::fprintf(stderr, "regatta: error: %s\n", base::PrintableLines(std::string(status.message())).c_str());
  return code;
}

// `regatta status`.
int ShowStatus(int argc, const char* const* argv) {
  const auto args = cluster::ParseStatusArgs(argc, argv, cluster::ProcessEnvironment());
  if (!args.ok()) return Fail(args.status(), kUsage);
  if (!args->help.empty()) {
    std::fputs(args->help.c_str(), stdout);
    return kDone;
  }
  if (args->credentials != nullptr) {
    if (const absl::Status status = wire::CheckCertificate(*args->credentials); !status.ok())
      return Fail(status, kUsage);
  }
  const std::vector<ServerAnswer> answers = AskServers(args->servers, args->timeout, args->credentials.get());
  const std::string text = args->form == cluster::StatusForm::kJson ? StatusJson(answers) : StatusTable(answers);
  std::fputs(text.c_str(), stdout);
  Exit code = kDone;
  for (const ServerAnswer& answer : answers)
    if (!answer.status.ok())
      code = static_cast<Exit>(Fail(absl::UnavailableError(absl::StrCat("server ", answer.endpoint,
                                                                        " does not answer: ", answer.status.message())),
                                    kFailed));
  return code;
}

// `regatta credentials`.
int InitCredentials(int argc, const char* const* argv) {
  const auto args = cluster::ParseCredentialsArgs(argc, argv);
  if (!args.ok()) return Fail(args.status(), kUsage);
  if (!args->help.empty()) {
    std::fputs(args->help.c_str(), stdout);
    return kDone;
  }
  const absl::Status made = MakeCredentials(*args);
  if (!made.ok()) return Fail(made, absl::IsAlreadyExists(made) ? kUsage : kFailed);
  const absl::StatusOr<std::string> text = DescribeCredentials(*args);
  if (!text.ok()) return Fail(text.status(), kFailed);
  std::fputs(text->c_str(), stdout);
  return kDone;
}

int Main(int argc, char** argv) {
  base::KeepFreedMemory();
  base::LimitArenas();
  if (argc > 1 && std::string_view(argv[1]) == cluster::kStatusMode) return ShowStatus(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == cluster::kCredentialsMode) return InitCredentials(argc - 1, argv + 1);
  const auto args = cluster::ParsePserverArgs(argc, argv, cluster::ProcessEnvironment());
  if (!args.ok()) return Fail(args.status(), kUsage);
  if (!args->help.empty()) {
    std::fputs(args->help.c_str(), stdout);
    return kDone;
  }
  if (!args->log_dir.empty()) {
    if (const absl::Status made = base::MakeFolders(args->log_dir); !made.ok())
      return Fail(base::Annotate(made, "--log_dir"), kUsage);
    FLAGS_log_dir = args->log_dir;
    FLAGS_logtostderr = false;
    FLAGS_alsologtostderr = true;
  }
  // What it writes is for this user alone, whatever the umask was.
  if (!args->data_dir.empty()) umask(077);
  google::InitGoogleLogging("regatta-pserver");
  for (const std::string& note : args->spec.notes) LOG(INFO) << note;
  ServerOptions options;
  options.listen = cluster::AllPorts(args->listen);
  options.workers = args->spec.workers;
  options.load = args->load;
  options.data_dir = args->data_dir;
  options.lease.length = std::chrono::duration<double>(*args->lease);
  if (args->since.has_value()) options.since = *args->since;
  options.compactor.log_bytes = static_cast<uint64_t>(*args->log_limit) << 20;
  options.push_memory = static_cast<uint64_t>(*args->push_memory) << 20;
  options.credentials = args->spec.credentials;
  if (!args->spec.servers.empty())
    options.place = ServerPlace{args->spec.index, static_cast<int>(args->spec.servers.size())};
  // The exporter first: a port that cannot be had is found before a worker has come. It ends before the server does.
  std::unique_ptr<PsServer> server;
  std::atomic<PsServer*> serving{nullptr};
  std::unique_ptr<metrics::Exporter> exporter;
  if (args->metrics_port.has_value()) {
    auto started = metrics::Exporter::Start(*args->metrics_port, [&serving](metrics::Exposition& out) {
      if (const PsServer* const now = serving) now->Collect(out);
      metrics::CollectProcess(out);
    });
    if (!started.ok()) return Fail(started.status(), kUsage);
    exporter = *std::move(started);
    LOG(INFO) << "metrics: " << exporter->url();
  }
  RaiseFileLimit();
  auto listening = PsServer::Start(options);
  if (!listening.ok()) return Fail(listening.status(), absl::IsUnavailable(listening.status()) ? kFailed : kUsage);
  if (*listening == nullptr) return kDone;
  server = *std::move(listening);
  serving = running = server.get();
  HandleSignals();
  const absl::Status status = server->Wait();
  if (stopped_by != 0) return 128 + stopped_by;
  return status.ok() ? kDone : Fail(status, kFailed);
}

}  // namespace
}  // namespace regatta::server

int main(int argc, char** argv) {
  regatta::base::OpenStandardDescriptors();
  FLAGS_logtostderr = true;
  FLAGS_log_year_in_prefix = false;  // I0318 21:47:01.298220 …, as scripts expect it
  if (const char* failpoints = std::getenv("REGATTA_FAILPOINTS"); failpoints != nullptr) {
    if (const absl::Status status = regatta::base::ArmFailpoints(failpoints); !status.ok()) {
      std::fprintf(stderr, "regatta: error: REGATTA_FAILPOINTS: %s\n", std::string(status.message()).c_str());
      return 2;
    }
  }
  regatta::cluster::ClearProxyVariables();
  regatta::wire::LogThroughGlog();
  return regatta::base::RunGuarded(&regatta::server::Main, argc, argv);
}
