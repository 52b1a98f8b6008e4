// Which of a job's endpoints belong to this machine.
// Thread-safety: a plain value once made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/endpoint.h"

namespace regatta::launch {

class OwnAddress {
 public:
  // POD_IP, where set, is the one address of this node. Otherwise they are the addresses of this machine's interfaces
  // (of loopback 127.0.0.1 and ::1 only: 127.0.0.2 and so on play other machines), its host name, and localhost.
  static absl::StatusOr<OwnAddress> Find(const std::optional<std::string>& pod_ip);
  explicit OwnAddress(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  bool Owns(const cluster::Endpoint& endpoint) const;
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  std::vector<std::string> hosts_;
};

}  // namespace regatta::launch
