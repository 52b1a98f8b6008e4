// Limits of a cluster, and the rule for addresses outside this machine: without credentials, traffic is neither
// authenticated nor encrypted, so they are refused unless the user says that the network is trusted.
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "base/status.h"
#include "cluster/cluster_spec.h"

namespace regatta::cluster {

inline constexpr int kMaxWorkers = 65'536;
inline constexpr int kMaxPortsNum = 256;

// Whether `host` may be used; the error names both ways out.
absl::Status CheckHost(std::string_view host, Network network);

// Every address of the spec.
absl::Status CheckNetwork(const ClusterSpec& spec);

}  // namespace regatta::cluster
