#include "cluster/role_hints.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "cluster/network.h"

namespace regatta::cluster {
namespace {

constexpr int kFluidPort = 6174;
constexpr int kV2Port = 7164;

std::string Origin(const std::string& name, const std::string& value) { return absl::StrCat(name, "=", value); }

absl::Status ReadIntInto(const Getenv& getenv, const std::string& name, int min, int max, Said<int>& said) {
  const std::optional<std::string> text = ReadText(getenv, name);
  if (!text.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(said.value, ReadInt(getenv, name, min, max, min));
  said.origin = Origin(name, *text);
  return absl::OkStatus();
}

absl::Status ReadHostInto(const Getenv& getenv, const std::string& name, Said<std::string>& said) {
  const std::optional<std::string> text = ReadText(getenv, name);
  if (!text.has_value()) return absl::OkStatus();
  absl::StatusOr<std::string> host = ParseHost(*text);
  if (!host.ok()) return base::Annotate(host.status(), name);
  said.value = *std::move(host);
  said.origin = Origin(name, *text);
  return absl::OkStatus();
}

// PSERVER or TRAINER. Set but empty is as wrong as any other word.
absl::Status ReadRoleInto(const Getenv& getenv, const std::string& name, Said<Role>& said) {
  const std::optional<std::string> text = getenv(name);
  if (!text.has_value()) return absl::OkStatus();
  const std::string word(absl::StripAsciiWhitespace(*text));
  if (word != "PSERVER" && word != "TRAINER") {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "=", *text, ": want PSERVER for a server or TRAINER for a worker; unset it to train alone"));
  }
  said.value = word == "PSERVER" ? Role::kServer : Role::kWorker;
  said.origin = Origin(name, word);
  return absl::OkStatus();
}

// PADDLE_PSERVER_ID, or the index that Kubernetes gives to a pod of an Indexed Job.
absl::Status ReadServerIndex(const Getenv& getenv, Said<int>& said) {
  const std::string name =
      ReadText(getenv, "PADDLE_PSERVER_ID").has_value() ? "PADDLE_PSERVER_ID" : "JOB_COMPLETION_INDEX";
  return ReadIntInto(getenv, name, 0, kMaxWorkers - 1, said);
}

absl::Status ReadWorkerIndex(const Getenv& getenv, Said<int>& said) {
  const std::string name =
      ReadText(getenv, "PADDLE_TRAINER_ID").has_value() ? "PADDLE_TRAINER_ID" : "JOB_COMPLETION_INDEX";
  return ReadIntInto(getenv, name, 0, kMaxWorkers - 1, said);
}

// A comma list of hosts that share one port.
absl::Status ReadHostList(const Getenv& getenv, const std::string& name, int port, Said<std::vector<Endpoint>>& said) {
  const std::optional<std::string> text = ReadText(getenv, name);
  if (!text.has_value()) return absl::OkStatus();
  absl::StatusOr<std::vector<Endpoint>> servers = ParseHosts(*text, port);
  if (!servers.ok()) return base::Annotate(servers.status(), name);
  said.value = *std::move(servers);
  said.origin = Origin(name, *text);
  return absl::OkStatus();
}

absl::Status ReadEndpointList(const Getenv& getenv, const std::string& name, Said<std::vector<Endpoint>>& said) {
  const std::optional<std::string> text = ReadText(getenv, name);
  if (!text.has_value()) return absl::OkStatus();
  absl::StatusOr<std::vector<Endpoint>> list = ParseEndpoints(*text);
  if (!list.ok()) return base::Annotate(list.status(), name);
  said.value = *std::move(list);
  said.origin = Origin(name, *text);
  return absl::OkStatus();
}

absl::StatusOr<bool> ReadBool(const Getenv& getenv, const std::string& name) {
  const std::optional<std::string> text = ReadText(getenv, name);
  if (!text.has_value()) return false;
  bool value = false;
  if (absl::SimpleAtob(*text, &value)) return value;
  return absl::InvalidArgumentError(absl::StrCat(name, "=", *text, ": want True or False"));
}

}  // namespace

absl::StatusOr<RoleHints> ReadFleet(const Getenv& getenv) {
  RoleHints hints;
  hints.family = Family::kFleet;
  RETURN_IF_ERROR(ReadRoleInto(getenv, "TRAINING_ROLE", hints.role));
  const bool server = hints.role.value == Role::kServer;
  RETURN_IF_ERROR(ReadEndpointList(getenv, "PADDLE_PSERVERS_IP_PORT_LIST", hints.servers));
  RETURN_IF_ERROR(ReadIntInto(getenv, "PADDLE_TRAINERS_NUM", 1, kMaxWorkers, hints.workers));
  if (!hints.servers.value.has_value()) hints.missing.push_back("PADDLE_PSERVERS_IP_PORT_LIST");
  if (!hints.workers.value.has_value()) hints.missing.push_back("PADDLE_TRAINERS_NUM");
  if (server) {
    RETURN_IF_ERROR(ReadServerIndex(getenv, hints.server_index));
    RETURN_IF_ERROR(ReadHostInto(getenv, "POD_IP", hints.own_host));
    RETURN_IF_ERROR(ReadIntInto(getenv, "PADDLE_PORT", 1, 65'535, hints.own_port));
    if (!hints.own_port.value.has_value() && !hints.server_index.value.has_value())
      hints.missing.push_back("PADDLE_PORT");
  } else {
    RETURN_IF_ERROR(ReadWorkerIndex(getenv, hints.worker_index));
    if (!hints.worker_index.value.has_value()) hints.missing.push_back("PADDLE_TRAINER_ID");
  }
  return hints;
}

absl::StatusOr<RoleHints> ReadFluid(const Getenv& getenv) {
  RoleHints hints;
  hints.family = Family::kFluid;
  RETURN_IF_ERROR(ReadRoleInto(getenv, "PADDLE_TRAINING_ROLE", hints.role));
  if (!hints.role.value.has_value()) hints.role.value = Role::kWorker;
  hints.ports_stated = ReadText(getenv, "PADDLE_PSERVER_PORT").has_value();
  RETURN_IF_ERROR(ReadIntInto(getenv, "PADDLE_PSERVER_PORT", 1, 65'535, hints.own_port));
  if (!hints.own_port.value.has_value()) hints.own_port.value = kFluidPort;
  RETURN_IF_ERROR(ReadHostList(getenv, "PADDLE_PSERVER_IPS", *hints.own_port.value, hints.servers));
  RETURN_IF_ERROR(ReadIntInto(getenv, "PADDLE_TRAINERS", 1, kMaxWorkers, hints.workers));
  if (!hints.servers.value.has_value()) hints.missing.push_back("PADDLE_PSERVER_IPS");
  if (!hints.workers.value.has_value()) hints.missing.push_back("PADDLE_TRAINERS");
  if (hints.role.value == Role::kServer) {
    RETURN_IF_ERROR(ReadServerIndex(getenv, hints.server_index));
    for (const char* name : {"PADDLE_CURRENT_IP", "PADDLE_CURRENT_IPP", "POD_IP"})
      if (!hints.own_host.value.has_value()) RETURN_IF_ERROR(ReadHostInto(getenv, name, hints.own_host));
    if (!hints.own_host.value.has_value() && !hints.server_index.value.has_value())
      hints.missing.push_back("PADDLE_CURRENT_IP");
  } else {
    RETURN_IF_ERROR(ReadWorkerIndex(getenv, hints.worker_index));
    if (!hints.worker_index.value.has_value()) hints.missing.push_back("PADDLE_TRAINER_ID");
  }
  return hints;
}

absl::StatusOr<RoleHints> ReadV2(const Getenv& getenv) {
  RoleHints hints;
  hints.family = Family::kV2;
  hints.role.value = Role::kWorker;
  ASSIGN_OR_RETURN(const bool use_gpu, ReadBool(getenv, "PADDLE_INIT_USE_GPU"));
  if (use_gpu) {
    return absl::InvalidArgumentError(
        "PADDLE_INIT_USE_GPU=True: this build has no GPU support; set PADDLE_INIT_USE_GPU=False");
  }
  ASSIGN_OR_RETURN(hints.ports_num, ReadInt(getenv, "PADDLE_INIT_PORTS_NUM", 1, kMaxPortsNum, 1));
  ASSIGN_OR_RETURN(hints.ports_num_for_sparse, ReadInt(getenv, "PADDLE_INIT_PORTS_NUM_FOR_SPARSE", 0, kMaxPortsNum, 1));
  const int last_first_port = 65'536 - hints.ports_num - hints.ports_num_for_sparse;
  ASSIGN_OR_RETURN(const int port, ReadInt(getenv, "PADDLE_INIT_PORT", 1, last_first_port, kV2Port));
  hints.ports_stated = ReadText(getenv, "PADDLE_INIT_PORT").has_value();
  RETURN_IF_ERROR(ReadHostList(getenv, "PADDLE_INIT_PSERVERS", port, hints.servers));
  RETURN_IF_ERROR(ReadIntInto(getenv, "PADDLE_INIT_NUM_GRADIENT_SERVERS", 1, kMaxWorkers, hints.workers));
  RETURN_IF_ERROR(ReadIntInto(getenv, "PADDLE_INIT_TRAINER_ID", 0, kMaxWorkers - 1, hints.worker_index));
  Said<int> trainer_count;
  RETURN_IF_ERROR(ReadIntInto(getenv, "PADDLE_INIT_TRAINER_COUNT", 1, 1024, trainer_count));
  hints.threads = trainer_count.value;
  if (trainer_count.stated() && hints.workers.stated() && *trainer_count.value != 1 &&
      *trainer_count.value != *hints.workers.value) {
    hints.notes.push_back(absl::StrCat(trainer_count.origin, " is read as the threads of this process, and ",
                                       hints.workers.origin, " as the number of workers of the job"));
  }
  if (!hints.workers.value.has_value()) hints.workers.value = 1;
  if (!hints.worker_index.value.has_value()) hints.worker_index.value = 0;
  return hints;
}

absl::StatusOr<RoleHints> ReadCollective(const Getenv& getenv) {
  RoleHints hints;
  hints.family = Family::kCollective;
  hints.role.value = Role::kCollectiveRank;
  Said<std::vector<Endpoint>> ranks;
  RETURN_IF_ERROR(ReadEndpointList(getenv, "PADDLE_TRAINER_ENDPOINTS", ranks));
  const std::optional<std::string> text = ReadText(getenv, "PADDLE_CURRENT_ENDPOINT");
  if (!ranks.value.has_value() || !text.has_value()) return hints;
  const absl::StatusOr<Endpoint> own = ParseEndpoint(*text);
  if (!own.ok()) return base::Annotate(own.status(), "PADDLE_CURRENT_ENDPOINT");
  const auto place = std::find(ranks.value->begin(), ranks.value->end(), *own);
  if (place == ranks.value->end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("PADDLE_CURRENT_ENDPOINT=", *text, " is not in ", ranks.origin, "; it must be one of them"));
  }
  hints.workers = {static_cast<int>(ranks.value->size()), ranks.origin};
  hints.worker_index = {static_cast<int>(place - ranks.value->begin()), Origin("PADDLE_CURRENT_ENDPOINT", *text)};
  return hints;
}

absl::StatusOr<RoleHints> ReadMpi(const Getenv& getenv) {
  RoleHints hints;
  hints.family = Family::kMpi;
  hints.role.value = Role::kMpiRank;
  const bool slurm = !ReadText(getenv, "OMPI_COMM_WORLD_SIZE").has_value();
  RETURN_IF_ERROR(ReadIntInto(getenv, slurm ? "SLURM_NTASKS" : "OMPI_COMM_WORLD_SIZE", 1, kMaxWorkers, hints.workers));
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (!hints.worker_index.value.has_value())
      RETURN_IF_ERROR(ReadIntInto(getenv, name, 0, kMaxWorkers - 1, hints.worker_index));
  }
  if (!hints.worker_index.value.has_value()) hints.missing.push_back(slurm ? "SLURM_PROCID" : "OMPI_COMM_WORLD_RANK");
  return hints;
}

namespace {

absl::Status Disagree(const std::string& a, const std::string& b) {
  return absl::InvalidArgumentError(absl::StrCat(a, " and ", b, " disagree; unset one of them, or make them agree"));
}

template <typename T>
absl::Status Same(const Said<T>& a, const Said<T>& b) {
  if (!a.stated() || !b.stated() || *a.value == *b.value) return absl::OkStatus();
  return Disagree(a.origin, b.origin);
}

// A list whose port is a default says nothing of ports.
absl::Status SameServers(const RoleHints& a, const RoleHints& b) {
  if (!a.servers.stated() || !b.servers.stated()) return absl::OkStatus();
  const bool ports = a.ports_stated && b.ports_stated;
  const bool same = std::equal(
      a.servers.value->begin(), a.servers.value->end(), b.servers.value->begin(), b.servers.value->end(),
      [ports](const Endpoint& x, const Endpoint& y) { return x.host == y.host && (!ports || x.port == y.port); });
  if (same) return absl::OkStatus();
  const auto with_ports = [](const RoleHints& c) {
    return c.family == Family::kFleet ? c.servers.origin
                                      : absl::StrCat(c.servers.origin, " (", JoinEndpoints(*c.servers.value), ")");
  };
  return Disagree(with_ports(a), with_ports(b));
}

}  // namespace

absl::Status CheckAgreement(const RoleHints& a, const RoleHints& b) {
  RETURN_IF_ERROR(Same(a.role, b.role));
  RETURN_IF_ERROR(SameServers(a, b));
  RETURN_IF_ERROR(Same(a.workers, b.workers));
  if (a.role.value == Role::kWorker) RETURN_IF_ERROR(Same(a.worker_index, b.worker_index));
  return Same(a.own_host, b.own_host);
}

}  // namespace regatta::cluster
