#include "launch/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace regatta::launch {
namespace {

// The address in the spelling of ParseHost, or "" of a family that is neither IPv4 nor IPv6.
std::string TextOf(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

}  // namespace

absl::StatusOr<OwnAddress> OwnAddress::Find(const std::optional<std::string>& pod_ip) {
  if (pod_ip.has_value()) {
    absl::StatusOr<std::string> host = cluster::ParseHost(*pod_ip);
    if (!host.ok()) return base::Annotate(host.status(), "POD_IP");
    return OwnAddress({*std::move(host)});
  }
  std::vector<std::string> hosts = {"127.0.0.1", "localhost"};
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return base::ErrnoStatus("cannot list the addresses of", "this machine");
  for (const ifaddrs* it = first; it != nullptr; it = it->ifa_next) {
    std::string text = TextOf(it->ifa_addr);
    if (!text.empty() && std::find(hosts.begin(), hosts.end(), text) == hosts.end()) hosts.push_back(std::move(text));
  }
  freeifaddrs(first);
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) {
    absl::StatusOr<std::string> host = cluster::ParseHost(name.data());
    if (host.ok()) hosts.push_back(*std::move(host));
  }
  return OwnAddress(std::move(hosts));
}

bool OwnAddress::Owns(const cluster::Endpoint& endpoint) const {
  return std::find(hosts_.begin(), hosts_.end(), endpoint.host) != hosts_.end();
}

}  // namespace regatta::launch
