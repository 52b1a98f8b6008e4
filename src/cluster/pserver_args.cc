#include "cluster/pserver_args.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/command_line.h"
#include "cluster/endpoint.h"
#include "cluster/network.h"

namespace regatta::cluster {
namespace {

constexpr char kServerFooter[] =
    "Examples:\n"
    "  regatta pserver                                    127.0.0.1:7164 for dense, 7165 for sparse tables, one "
    "worker\n"
    "  regatta pserver --port=7164 --ports_num=2 --ports_num_for_sparse=2 --num_gradient_servers=4\n"
    "  regatta pserver --token_file=c/token --tls_cert=c/tls.crt --tls_key=c/tls.key --tls_ca=c/ca.crt\n"
    "                                                     for other machines: regatta credentials init makes c/\n"
    "  regatta pserver --host=10.0.0.1 --insecure         on a trusted network\n"
    "It waits for the workers, which bring the tables, and ends when all of them have finished.\n"
    "PADDLE_INIT_PORT, _PORTS_NUM, _PORTS_NUM_FOR_SPARSE and _NUM_GRADIENT_SERVERS are the flags' defaults.\n"
    "Exit codes: 0 the workers have finished, 1 failed, 2 wrong arguments or a port in use.";

constexpr const char* kNotYet[] = {"--checkpoint_root"};

struct Flags {
  int port = 7164;
  int ports_num = 1;
  int ports_num_for_sparse = 1;
  int num_gradient_servers = 1;
  std::string host;  // "" = not said
  bool insecure = false;
  CredentialFiles credentials;

  Access access() const { return {insecure ? Network::kTrusted : Network::kLoopbackOnly, credentials}; }
  bool from_environment = false;
};

absl::Status ReadDefaults(const Getenv& getenv, Flags& flags) {
  ASSIGN_OR_RETURN(flags.port, ReadInt(getenv, "PADDLE_INIT_PORT", 1, 65'535, flags.port));
  ASSIGN_OR_RETURN(flags.ports_num, ReadInt(getenv, "PADDLE_INIT_PORTS_NUM", 1, kMaxPortsNum, flags.ports_num));
  ASSIGN_OR_RETURN(flags.ports_num_for_sparse,
                   ReadInt(getenv, "PADDLE_INIT_PORTS_NUM_FOR_SPARSE", 0, kMaxPortsNum, flags.ports_num_for_sparse));
  ASSIGN_OR_RETURN(flags.num_gradient_servers,
                   ReadInt(getenv, "PADDLE_INIT_NUM_GRADIENT_SERVERS", 1, kMaxWorkers, flags.num_gradient_servers));
  return absl::OkStatus();
}

void AddOptions(CLI::App& app, Flags& flags, PserverArgs& args) {
  const auto number = [&app](const char* name, int& value, int min, int max, const char* about) {
    app.add_option(name, value, about)->check(CLI::Range(min, max))->capture_default_str()->type_name("N");
  };
  number("--port", flags.port, 1, 65'535, "the first port");
  number("--ports_num", flags.ports_num, 1, kMaxPortsNum, "ports from there on, for more throughput");
  number("--ports_num_for_sparse", flags.ports_num_for_sparse, 0, kMaxPortsNum,
         "further ports, which serve the sparse tables; 0: the first ones do");
  number("--num_gradient_servers", flags.num_gradient_servers, 1, kMaxWorkers, "workers that take part");
  app.add_option("--host", flags.host, "the address to listen on; default 127.0.0.1, with credentials 0.0.0.0")
      ->type_name("ADDRESS");
  app.add_option("--load", args.load, "start from this checkpoint")->type_name("DIR");
  app.add_option(
         "--data_dir", args.data_dir,
         "log there what is acknowledged to workers, on a disk of this machine: a server that was killed and is "
         "started again with the same folder goes on where it was (REGATTA_DATA_DIR)")
      ->type_name("DIR");
  app.add_option(
         "--log_limit", args.log_limit,
         absl::StrCat("megabytes that this log may come to, about: then a checkpoint is written beside it, while "
                      "training goes on, and makes it short (",
                      kDefaultLogLimit, "; REGATTA_LOG_LIMIT)"))
      ->check(CLI::Range(kLeastLogLimit, 1 << 30))
      ->type_name("MB");
  app.add_option(
         "--push_memory", args.push_memory,
         absl::StrCat("megabytes that pushes of one worker may hold here until they are applied, in sync and where "
                      "workers come back; a worker that would hold more is refused (",
                      kDefaultPushMemory, "; REGATTA_PUSH_MEMORY)"))
      ->check(CLI::Range(kLeastPushMemory, 1 << 30))
      ->type_name("MB");
  app.add_option(
         "--lease_seconds", args.lease,
         absl::StrCat("a server that has been silent in its data_dir for half as long again, because it sleeps, "
                      "may be replaced by another that is started there (",
                      kDefaultLease, "; REGATTA_LEASE_SECONDS)"))
      ->check(CLI::Range(kLeastLease, kMostLease))
      ->check(base::NotNan)
      ->type_name("S");
  app.add_option("--log_dir", args.log_dir, "write log files there, not only to stderr")->type_name("DIR");
  app.add_option("--metrics_port", args.metrics_port,
                 "serve Prometheus text at http://127.0.0.1:N/metrics; 0: any free port, which the log names")
      ->check(CLI::Range(0, 65'535))
      ->type_name("N");
  app.add_flag("--insecure", flags.insecure,
               "without credentials: allow addresses outside this machine, the network is trusted");
  AddCredentialOptions(app, flags.credentials);
  app.add_flag(kRoleFromEnvironment, flags.from_environment)->group("");
}

absl::Status Unexpected(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const char* later : kNotYet) {
    if (name == later)
      return absl::UnimplementedError(absl::StrCat("regatta pserver: ", later, " is not available yet"));
  }
  return base::UnexpectedWord(app, word);
}

absl::Status TakeFlags(const Flags& flags, const Getenv& getenv, PserverArgs& args) {
  ClusterSpec& spec = args.spec;
  spec.role = Role::kServer;
  spec.family = Family::kV2;
  spec.workers = flags.num_gradient_servers;
  spec.ports_num = flags.ports_num;
  spec.ports_num_for_sparse = flags.ports_num_for_sparse;
  const int last = flags.port + flags.ports_num + flags.ports_num_for_sparse - 1;
  if (last > 65'535) {
    return absl::InvalidArgumentError(absl::StrCat("regatta pserver: --port ", flags.port, " and ",
                                                   flags.ports_num + flags.ports_num_for_sparse, " ports end at ", last,
                                                   ", above 65535"));
  }
  ASSIGN_OR_RETURN(const Access access, ReadAccess(getenv, flags.access()));
  spec.network = access.network;
  spec.credentials = access.credentials;
  const char* const fallback = access.network == Network::kGuarded ? "0.0.0.0" : "127.0.0.1";
  const absl::StatusOr<std::string> host = ParseHost(flags.host.empty() ? fallback : flags.host);
  if (!host.ok()) return base::Annotate(host.status(), "regatta pserver: --host");
  RETURN_IF_ERROR(base::Annotate(CheckHost(*host, spec.network), "regatta pserver: --host"));
  spec.endpoint = Endpoint{*host, flags.port}.ToString();
  return absl::OkStatus();
}

absl::Status TakeRole(const Flags& flags, const Getenv& getenv, PserverArgs& args) {
  ASSIGN_OR_RETURN(args.spec, ReadEnvironment(getenv, flags.access()));
  if (args.spec.role == Role::kServer) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(kRoleFromEnvironment, ": the environment makes this process a ",
                                                 RoleName(args.spec.role),
                                                 ", not a server; set TRAINING_ROLE=PSERVER"));
}

}  // namespace

absl::StatusOr<PserverArgs> ParsePserverArgs(int argc, const char* const* argv, const Getenv& getenv) {
  PserverArgs args;
  Flags flags;
  const char* const* const end = argv + argc;
  const char* const* const dashes = std::find(argv, end, std::string_view("--"));
  if (dashes != end) args.command.assign(dashes + 1, end);
  RETURN_IF_ERROR(ReadDefaults(getenv, flags));
  CLI::App app{"A parameter server: holds a part of the tables and serves the workers of one job.", "regatta pserver"};
  app.footer(kServerFooter);
  app.allow_extras();
  AddOptions(app, flags, args);
  ASSIGN_OR_RETURN(args.help, base::ParseWords(app, static_cast<int>(dashes - argv), argv));
  if (!args.help.empty()) return args;
  for (const std::string& word : app.remaining()) return Unexpected(app, word);
  if (!flags.from_environment && dashes != end) return Unexpected(app, "--");
  RETURN_IF_ERROR(flags.from_environment ? TakeRole(flags, getenv, args) : TakeFlags(flags, getenv, args));
  if (args.data_dir.empty()) args.data_dir = ReadDataDir(getenv);
  for (const char* of_it : {"--log_limit", "--lease_seconds"}) {
    if (args.data_dir.empty() && app.count(of_it) > 0)
      return absl::InvalidArgumentError(
          absl::StrCat(of_it, " is about the log in --data_dir (REGATTA_DATA_DIR), which is not given"));
  }
  ASSIGN_OR_RETURN(args.since, ReadJobSince(getenv));
  if (!args.log_limit.has_value()) {
    ASSIGN_OR_RETURN(args.log_limit, ReadLogLimit(getenv));
  }
  if (!args.push_memory.has_value()) {
    ASSIGN_OR_RETURN(args.push_memory, ReadPushMemory(getenv));
  }
  if (!args.lease.has_value()) {
    ASSIGN_OR_RETURN(args.lease, ReadLease(getenv));
  }
  if (!args.metrics_port.has_value()) {
    ASSIGN_OR_RETURN(args.metrics_port, ReadMetricsPort(getenv));
  }
  args.listen = PortsFrom(args.spec.endpoint, args.spec.ports_num, args.spec.ports_num_for_sparse);
  return args;
}

}  // namespace regatta::cluster
