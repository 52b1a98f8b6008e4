#include "cluster/network.h"

#include "cluster/endpoint.h"

namespace regatta::cluster {

absl::Status CheckHost(std::string_view host, Network network) {
  if (network != Network::kLoopbackOnly || IsLoopback(host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      base::View(host),
      " is not a loopback address, and without a token and TLS anyone who reaches the port can read and change the "
      "model: make credentials with `regatta credentials init DIR` and set what it prints, or, on a trusted network, "
      "say "
      "so with REGATTA_INSECURE=1 or --insecure"));
}

absl::Status CheckNetwork(const ClusterSpec& spec) {
  for (const std::string& server : spec.servers) {
    ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(server));
    RETURN_IF_ERROR(CheckHost(endpoint.host, spec.network));
  }
  if (spec.endpoint.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Endpoint own, ParseEndpoint(spec.endpoint));
  return CheckHost(own.host, spec.network);
}

}  // namespace regatta::cluster
