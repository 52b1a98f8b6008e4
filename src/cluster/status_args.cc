#include "cluster/status_args.h"

#include <CLI/CLI.hpp>

#include "base/command_line.h"
#include "cluster/endpoint.h"
#include "cluster/network.h"

namespace regatta::cluster {
namespace {

constexpr char kStatusFooter[] =
    "Without --servers they are those of the environment: PADDLE_PSERVERS_IP_PORT_LIST, PADDLE_PSERVER_IPS or\n"
    "PADDLE_INIT_PSERVERS, as the job's own processes read them. regatta launch prints them when it starts.\n"
    "Examples:\n"
    "  regatta status --servers=127.0.0.1:36200,127.0.0.1:36201\n"
    "  PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:36200 regatta status --json\n"
    "  watch -n 2 regatta status --servers=127.0.0.1:36200\n"
    "Exit codes: 0 every server answered, 1 one did not (it is named), 2 wrong usage. docs/observing.md explains the "
    "columns.";

absl::StatusOr<std::vector<Endpoint>> ServersOf(const std::string& list, const Getenv& getenv) {
  if (!list.empty()) {
    absl::StatusOr<std::vector<Endpoint>> servers = ParseEndpoints(list);
    if (!servers.ok()) return base::Annotate(servers.status(), "regatta status: --servers");
    return servers;
  }
  ASSIGN_OR_RETURN(std::vector<Endpoint> servers, ReadServers(getenv));
  if (!servers.empty()) return servers;
  return absl::InvalidArgumentError(
      "regatta status: which job? Name its servers with --servers=host:port,… or PADDLE_PSERVERS_IP_PORT_LIST");
}

}  // namespace

absl::StatusOr<StatusArgs> ParseStatusArgs(int argc, const char* const* argv, const Getenv& getenv) {
  StatusArgs args;
  std::string list;
  bool json = false, insecure = false;
  CredentialFiles files;
  double timeout = args.timeout.count();
  CLI::App app{"Ask the servers of a running job how it does.", "regatta status"};
  app.footer(kStatusFooter);
  app.allow_extras();
  app.add_option("--servers", list, "the job's servers")->type_name("HOST:PORT,...");
  app.add_flag("--json", json, "print JSON");
  app.add_option("--timeout", timeout, "seconds to wait for an answer")
      ->check(CLI::Range(0.01, 3600.0))
      ->check(base::NotNan)
      ->capture_default_str()
      ->type_name("SECONDS");
  app.add_flag("--insecure", insecure,
               "without credentials: allow servers outside this machine, the network is trusted");
  AddCredentialOptions(app, files);
  ASSIGN_OR_RETURN(args.help, base::ParseWords(app, argc, argv));
  if (!args.help.empty()) return args;
  RETURN_IF_ERROR(base::CheckNothingRemains(app));
  ASSIGN_OR_RETURN(const std::vector<Endpoint> servers, ServersOf(list, getenv));
  ASSIGN_OR_RETURN(const Access access,
                   ReadAccess(getenv, {insecure ? Network::kTrusted : Network::kLoopbackOnly, files}));
  for (const Endpoint& server : servers)
    RETURN_IF_ERROR(base::Annotate(CheckHost(server.host, access.network), "regatta status"));
  args.servers = ToStrings(servers);
  args.credentials = access.credentials;
  args.form = json ? StatusForm::kJson : StatusForm::kTable;
  args.timeout = std::chrono::duration<double>(timeout);
  return args;
}

}  // namespace regatta::cluster
