// The server's executable: `regatta pserver`, and `regatta train` in the PSERVER role.
#include <glog/logging.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/standard_output.h"
#include "cluster/environment.h"
#include "cluster/pserver_args.h"
#include "server/ps_server.h"

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

int Fail(const absl::Status& status, Exit code) {
  std::fprintf(stderr, "regatta: error: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  const auto args = cluster::ParsePserverArgs(argc, argv, cluster::ProcessEnvironment());
  if (!args.ok()) return Fail(args.status(), kUsage);
  if (!args->help.empty()) {
    std::fputs(args->help.c_str(), stdout);
    return kDone;
  }
  if (args->metrics_port != 0)
    return Fail(absl::UnimplementedError("--metrics_port is not available in this version"), kUsage);
  if (!args->log_dir.empty()) {
    FLAGS_log_dir = args->log_dir;
    FLAGS_logtostderr = false;
    FLAGS_alsologtostderr = true;
  }
  google::InitGoogleLogging("regatta-pserver");
  for (const std::string& note : args->spec.notes) LOG(INFO) << note;
  ServerOptions options;
  options.listen = cluster::AllPorts(args->listen);
  options.workers = args->spec.workers;
  options.load = args->load;
  if (!args->spec.servers.empty())
    options.place = ServerPlace{args->spec.index, static_cast<int>(args->spec.servers.size())};
  auto server = PsServer::Start(options);
  if (!server.ok()) return Fail(server.status(), kUsage);
  running = server->get();
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  const absl::Status status = (*server)->Wait();
  if (stopped_by != 0) return 128 + stopped_by;
  return status.ok() ? kDone : Fail(status, kFailed);
}

}  // namespace
}  // namespace regatta::server

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_log_year_in_prefix = false;  // I0318 21:47:01.298220 …, as scripts expect it
  regatta::cluster::ClearProxyVariables();
  return regatta::base::ExitCodeOf(regatta::server::Main(argc, argv));
}
