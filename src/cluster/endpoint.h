// Where a process listens: host:port, with the host an IPv4 address, a bracketed IPv6 address or a name.
// Thread-safety: plain values, pure functions.
// Invariant: a parsed host is normalised (names in lower case, IPv6 without brackets), so equal text is an equal place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regatta::cluster {

struct Endpoint {
  std::string host;
  int port = 0;

  // "10.0.0.1:36000", "[::1]:36000".
  std::string ToString() const;
  bool operator==(const Endpoint&) const = default;
};

// Errors quote the text and say what is wanted.
absl::StatusOr<std::string> ParseHost(std::string_view text);
absl::StatusOr<int> ParsePort(std::string_view text);
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// A comma list; at least one entry, none twice, none empty, none an address that nobody can dial (0.0.0.0).
absl::StatusOr<std::vector<Endpoint>> ParseEndpoints(std::string_view list);
// The same of hosts, all with one port.
absl::StatusOr<std::vector<Endpoint>> ParseHosts(std::string_view list, int port);

// 127.0.0.0/8, ::1 and localhost. A name is not: what it means is decided elsewhere and later.
bool IsLoopback(std::string_view host);
// 0.0.0.0 and ::, which are for listening only.
bool IsWildcard(std::string_view host);

// "a:1,b:2".
std::string JoinEndpoints(const std::vector<Endpoint>& endpoints);
std::vector<std::string> ToStrings(const std::vector<Endpoint>& endpoints);

}  // namespace regatta::cluster
