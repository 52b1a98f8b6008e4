#include "cluster/environment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "cluster/network.h"
#include "cluster/role_hints.h"

namespace regatta::cluster {
namespace {

constexpr double kMaxWaitSeconds = 1e7;

constexpr char kMetricsPort[] = "REGATTA_METRICS_PORT";
constexpr char kDataDir[] = "REGATTA_DATA_DIR";
constexpr char kLogLimit[] = "REGATTA_LOG_LIMIT";
constexpr char kPushMemory[] = "REGATTA_PUSH_MEMORY";
constexpr char kLease[] = "REGATTA_LEASE_SECONDS";
constexpr char kWorkersReturn[] = "REGATTA_WORKERS_RETURN";

constexpr std::string_view kRoleVariables[] = {
    "TRAINING_ROLE",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ID",
    "POD_IP",
    "PADDLE_PORT",
    "PADDLE_PSERVER_ID",
    "JOB_COMPLETION_INDEX",
    "PADDLE_TRAINING_ROLE",
    "PADDLE_PSERVER_IPS",
    "PADDLE_PSERVER_PORT",
    "PADDLE_TRAINERS",
    "PADDLE_CURRENT_IP",
    "PADDLE_CURRENT_IPP",
    "PADDLE_INIT_PSERVERS",
    "PADDLE_INIT_PORT",
    "PADDLE_INIT_PORTS_NUM",
    "PADDLE_INIT_PORTS_NUM_FOR_SPARSE",
    "PADDLE_INIT_TRAINER_ID",
    "PADDLE_INIT_NUM_GRADIENT_SERVERS",
    "PADDLE_INIT_USE_GPU",
    "PADDLE_INIT_TRAINER_COUNT",
    "PADDLE_CURRENT_ENDPOINT",
    "PADDLE_TRAINER_ENDPOINTS",
    kMetricsPort,
    kDataDir,
    kWorkersReturn,
    kJobSince,
};

constexpr const char* kProxies[] = {"grpc_proxy", "http_proxy", "https_proxy", "all_proxy",
                                    "GRPC_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"};

// More than one process, by a size that MPI or Slurm sets. A size that is no number is left over from something else.
bool MoreThanOne(const Getenv& getenv, const std::string& name) {
  const std::optional<std::string> text = ReadText(getenv, name);
  int size = 0;
  return text.has_value() && absl::SimpleAtoi(*text, &size) && size > 1;
}

// The families whose deciding variable is set, in the order of the table.
absl::StatusOr<std::vector<RoleHints>> SetFamilies(const Getenv& getenv) {
  std::vector<RoleHints> families;
  const auto add = [&families](absl::StatusOr<RoleHints> hints) -> absl::Status {
    RETURN_IF_ERROR(hints.status());
    families.push_back(*std::move(hints));
    return absl::OkStatus();
  };
  if (getenv("TRAINING_ROLE").has_value()) RETURN_IF_ERROR(add(ReadFleet(getenv)));
  if (getenv("PADDLE_TRAINING_ROLE").has_value() || ReadText(getenv, "PADDLE_PSERVER_IPS"))
    RETURN_IF_ERROR(add(ReadFluid(getenv)));
  if (ReadText(getenv, "PADDLE_INIT_PSERVERS")) RETURN_IF_ERROR(add(ReadV2(getenv)));
  if (ReadText(getenv, "PADDLE_TRAINER_ENDPOINTS") && ReadText(getenv, "PADDLE_CURRENT_ENDPOINT"))
    RETURN_IF_ERROR(add(ReadCollective(getenv)));
  if (families.empty() && (MoreThanOne(getenv, "OMPI_COMM_WORLD_SIZE") ||
                           (ReadText(getenv, "SLURM_STEP_ID") && MoreThanOne(getenv, "SLURM_NTASKS"))))
    RETURN_IF_ERROR(add(ReadMpi(getenv)));
  return families;
}

absl::Status Missing(const RoleHints& hints) {
  const char* because = hints.role.value == Role::kServer ? "a server" : "a worker";
  const std::string origin = hints.role.origin.empty() ? hints.servers.origin : hints.role.origin;
  return absl::InvalidArgumentError(absl::StrCat(origin, " makes this process ", because,
                                                 ", which also needs: ", absl::StrJoin(hints.missing, ", "),
                                                 hints.missing.size() == 1 ? " (not set)" : " (none of them is set)"));
}

std::string OriginOr(const std::string& origin, const char* fallback) { return origin.empty() ? fallback : origin; }

// Index and endpoint of a server whose index is given.
absl::Status PlaceByIndex(const RoleHints& hints, ClusterSpec& spec) {
  const std::vector<Endpoint>& servers = *hints.servers.value;
  const int index = *hints.server_index.value;
  if (index >= static_cast<int>(servers.size())) {
    return absl::InvalidArgumentError(absl::StrCat(hints.server_index.origin,
                                                   " is out of range: ", hints.servers.origin, " has ", servers.size(),
                                                   " servers, 0 to ", servers.size() - 1));
  }
  const Endpoint& listed = servers[static_cast<size_t>(index)];
  const Endpoint own{hints.own_host.value.value_or(listed.host), hints.own_port.value.value_or(listed.port)};
  const auto place = std::find(servers.begin(), servers.end(), own);
  if (own.port != listed.port || (place != servers.end() && place - servers.begin() != index)) {
    return absl::InvalidArgumentError(absl::StrCat(hints.server_index.origin, " is ", listed.ToString(), " in ",
                                                   hints.servers.origin, ", but this server's address is ",
                                                   own.ToString(), "; correct one of them"));
  }
  spec.index = index;
  spec.endpoint = own.ToString();
  return absl::OkStatus();
}

absl::Status PlaceServer(const RoleHints& hints, ClusterSpec& spec) {
  if (hints.server_index.value.has_value()) return PlaceByIndex(hints, spec);
  const std::vector<Endpoint>& servers = *hints.servers.value;
  const Endpoint own{hints.own_host.value.value_or("127.0.0.1"), *hints.own_port.value};
  const auto place = std::find(servers.begin(), servers.end(), own);
  if (place == servers.end()) {
    const char* host_default = hints.family == Family::kFleet ? "POD_IP=127.0.0.1, the default" : "PADDLE_CURRENT_IP";
    const char* port_default = "PADDLE_PSERVER_PORT=6174, the default";
    return absl::InvalidArgumentError(
        absl::StrCat("this server's endpoint ", own.ToString(), " (", OriginOr(hints.own_host.origin, host_default),
                     ", ", OriginOr(hints.own_port.origin, port_default),
                     ") is not in the list of servers: ", JoinEndpoints(servers), " (", hints.servers.origin, ")"));
  }
  spec.index = static_cast<int>(place - servers.begin());
  spec.endpoint = own.ToString();
  return absl::OkStatus();
}

absl::Status PlaceWorker(const RoleHints& hints, ClusterSpec& spec) {
  spec.index = *hints.worker_index.value;
  if (spec.index < spec.workers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(OriginOr(hints.worker_index.origin, "the worker's id"), " is out of range: there are ", spec.workers,
                   " workers (", OriginOr(hints.workers.origin, "the default"), "), so want 0 to ", spec.workers - 1));
}

absl::StatusOr<ClusterSpec> SpecFrom(const RoleHints& hints) {
  if (!hints.missing.empty()) return Missing(hints);
  ClusterSpec spec;
  spec.family = hints.family;
  spec.role = *hints.role.value;
  spec.workers = *hints.workers.value;
  spec.ports_num = hints.ports_num;
  spec.ports_num_for_sparse = hints.ports_num_for_sparse;
  spec.threads = hints.threads;
  spec.notes = hints.notes;
  if (hints.servers.value.has_value()) spec.servers = ToStrings(*hints.servers.value);
  RETURN_IF_ERROR(spec.role == Role::kServer ? PlaceServer(hints, spec) : PlaceWorker(hints, spec));
  return spec;
}

absl::StatusOr<std::optional<double>> ReadWaitTimeout(const Getenv& getenv) {
  const std::optional<std::string> text = ReadText(getenv, "REGATTA_SERVER_WAIT_TIMEOUT");
  if (!text.has_value()) return std::nullopt;
  double seconds = 0;
  if (!absl::SimpleAtod(*text, &seconds) || !std::isfinite(seconds) || seconds <= 0 || seconds > kMaxWaitSeconds) {
    return absl::InvalidArgumentError(
        absl::StrCat("REGATTA_SERVER_WAIT_TIMEOUT=", *text, ": want seconds, above 0 and at most 10000000"));
  }
  return seconds;
}

absl::StatusOr<bool> ReadSwitch(const Getenv& getenv, const char* name) {
  const std::optional<std::string> text = ReadText(getenv, name);
  bool on = false;
  if (text.has_value() && !absl::SimpleAtob(*text, &on))
    return absl::InvalidArgumentError(absl::StrCat(name, "=", *text, ": want 1 or 0"));
  return on;
}

}  // namespace

absl::StatusOr<ClusterSpec> ReadPlace(const Getenv& getenv) {
  ASSIGN_OR_RETURN(const std::vector<RoleHints> families, SetFamilies(getenv));
  if (families.empty()) return ClusterSpec{};
  for (size_t i = 1; i < families.size(); ++i) RETURN_IF_ERROR(CheckAgreement(families[0], families[i]));
  return SpecFrom(families[0]);
}

absl::StatusOr<ClusterSpec> ReadEnvironment(const Getenv& getenv, const Access& said) {
  ASSIGN_OR_RETURN(ClusterSpec spec, ReadPlace(getenv));
  if (spec.family == Family::kNone) return spec;
  ASSIGN_OR_RETURN(const Access access, ReadAccess(getenv, said));
  spec.network = access.network;
  spec.credentials = access.credentials;
  ASSIGN_OR_RETURN(spec.server_wait_timeout, ReadWaitTimeout(getenv));
  ASSIGN_OR_RETURN(spec.workers_return, ReadSwitch(getenv, kWorkersReturn));
  RETURN_IF_ERROR(CheckNetwork(spec));
  return spec;
}

absl::Status CheckAvailable(const ClusterSpec& spec) {
  if (spec.role == Role::kCollectiveRank) {
    return absl::UnimplementedError(
        "PADDLE_TRAINER_ENDPOINTS and PADDLE_CURRENT_ENDPOINT make this process a collective rank, which is not "
        "available yet; unset them to train alone, or use servers and workers (regatta launch --help)");
  }
  if (spec.role == Role::kMpiRank) {
    return absl::UnimplementedError(
        absl::StrCat("this is rank ", spec.index, " of ", spec.workers,
                     " under mpirun or srun, which is not available yet; give each rank a role with TRAINING_ROLE and "
                     "PADDLE_PSERVERS_IP_PORT_LIST, or use regatta launch"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CoreDumps> ReadCoreDumps(const Getenv& getenv) {
  ASSIGN_OR_RETURN(const bool allowed, ReadSwitch(getenv, "REGATTA_CORE_DUMPS"));
  return allowed ? CoreDumps::kAllow : CoreDumps::kForbid;
}

absl::StatusOr<Access> ReadAccess(const Getenv& getenv, const Access& said) {
  Access access(said.network, ReadCredentialFiles(getenv, said.files));
  ASSIGN_OR_RETURN(const CoreDumps dumps, ReadCoreDumps(getenv));
  ASSIGN_OR_RETURN(access.credentials, LoadCredentials(access.files, dumps));
  ASSIGN_OR_RETURN(const bool insecure, ReadSwitch(getenv, "REGATTA_INSECURE"));
  if (insecure) access.network = Network::kTrusted;
  if (access.credentials != nullptr) access.network = Network::kGuarded;
  return access;
}

absl::StatusOr<std::vector<Endpoint>> ReadServers(const Getenv& getenv) {
  for (const auto read : {ReadFleet, ReadFluid, ReadV2}) {
    ASSIGN_OR_RETURN(const RoleHints hints, read(getenv));
    if (hints.servers.value.has_value()) return *hints.servers.value;
  }
  return std::vector<Endpoint>{};
}

absl::StatusOr<std::optional<int>> ReadMetricsPort(const Getenv& getenv) {
  if (!ReadText(getenv, kMetricsPort).has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(const int port, ReadInt(getenv, kMetricsPort, 0, 65'535, 0));
  return std::optional<int>(port);
}

absl::StatusOr<int> ReadLogLimit(const Getenv& getenv) {
  return ReadInt(getenv, kLogLimit, kLeastLogLimit, 1 << 30, kDefaultLogLimit);
}

absl::StatusOr<int> ReadPushMemory(const Getenv& getenv) {
  return ReadInt(getenv, kPushMemory, kLeastPushMemory, 1 << 30, kDefaultPushMemory);
}

absl::StatusOr<double> ReadLease(const Getenv& getenv) {
  const std::optional<std::string> text = ReadText(getenv, kLease);
  if (!text.has_value()) return kDefaultLease;
  double value = 0;
  if (!absl::SimpleAtod(*text, &value) || !(value >= kLeastLease && value <= kMostLease))
    return absl::InvalidArgumentError(
        absl::StrCat(kLease, "=", *text, ": want a number from ", kLeastLease, " to ", kMostLease));
  return value;
}

absl::StatusOr<std::optional<double>> ReadJobSince(const Getenv& getenv) {
  const std::optional<std::string> text = ReadText(getenv, kJobSince);
  if (!text.has_value()) return std::nullopt;
  double value = 0;
  if (!absl::SimpleAtod(*text, &value) || !(value >= 0))
    return absl::InvalidArgumentError(absl::StrCat(kJobSince, "=", *text, ": want seconds since 1970"));
  return value;
}

std::string ReadDataDir(const Getenv& getenv) { return ReadText(getenv, kDataDir).value_or(""); }

std::span<const std::string_view> RoleVariables() { return kRoleVariables; }

void ClearProxyVariables() {
  for (const char* name : kProxies) unsetenv(name);
}

}  // namespace regatta::cluster
