#include "cluster/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace regatta::cluster {
namespace {

constexpr size_t kMaxEndpoints = 65'536;
constexpr size_t kMaxHostBytes = 253;  // of a DNS name

std::string Strip(std::string_view text) { return std::string(absl::StripAsciiWhitespace(base::View(text))); }

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", base::View(text), "' ", base::View(why)));
}

bool IsIpv4(const std::string& host) {
  in_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool LooksLikeIpv4(const std::string& host) {
  return std::all_of(host.begin(), host.end(), [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
}

bool IsName(const std::string& host) {
  if (host.size() > kMaxHostBytes) return false;
  for (const absl::string_view label : absl::StrSplit(host, '.')) {
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') return false;
    for (const char c : label)
      if (!absl::ascii_isalnum(c) && c != '-' && c != '_') return false;
  }
  return true;
}

absl::Status CheckList(std::string_view list, const std::vector<Endpoint>& endpoints) {
  if (endpoints.empty()) return absl::InvalidArgumentError("the list is empty; want host:port,host:port,…");
  if (endpoints.size() > kMaxEndpoints) return absl::InvalidArgumentError("the list has more than 65536 entries");
  std::vector<std::string> sorted = ToStrings(endpoints);
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return absl::InvalidArgumentError(absl::StrCat(*twice, " is twice in ", base::View(list)));
  for (const Endpoint& endpoint : endpoints) {
    if (IsWildcard(endpoint.host))
      return Bad(endpoint.ToString(), "is an address to listen on, not one that others can reach");
  }
  return absl::OkStatus();
}

}  // namespace

std::string Endpoint::ToString() const {
  return host.find(':') == std::string::npos ? absl::StrCat(host, ":", port) : absl::StrCat("[", host, "]:", port);
}

absl::StatusOr<std::string> ParseHost(std::string_view text) {
  std::string host = absl::AsciiStrToLower(Strip(text));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return absl::InvalidArgumentError("a host is empty; want an address or a name");
  if (host.find(':') != std::string::npos) {
    in6_addr address;
    if (inet_pton(AF_INET6, host.c_str(), &address) != 1)
      return Bad(text, "is not a host: want an address or a name, without a port");
    char canonical[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, &address, canonical, sizeof canonical);
    return std::string(canonical);
  }
  if (LooksLikeIpv4(host) ? !IsIpv4(host) : !IsName(host))
    return Bad(text, "is not a host: want an address such as 10.0.0.1, or a name");
  return host;
}

absl::StatusOr<int> ParsePort(std::string_view text) {
  const std::string digits = Strip(text);
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 1 || port > 65'535)
    return Bad(text, "is not a port: want 1 to 65535");
  return port;
}

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  const std::string whole = Strip(text);
  const size_t colon = whole.rfind(':');
  const bool bracketed = !whole.empty() && whole.front() == '[';
  if (colon == std::string::npos || (bracketed && whole[colon - 1] != ']'))
    return Bad(text, "has no port; want host:port, such as 10.0.0.1:36000");
  if (!bracketed && whole.find(':') != colon)
    return Bad(text, "is not host:port; write an IPv6 address as [::1]:36000");
  Endpoint endpoint;
  ASSIGN_OR_RETURN(endpoint.host, ParseHost(whole.substr(0, colon)));
  const absl::StatusOr<int> port = ParsePort(whole.substr(colon + 1));
  if (!port.ok()) return Bad(text, "has no good port; want host:port with a port from 1 to 65535");
  endpoint.port = *port;
  return endpoint;
}

absl::StatusOr<std::vector<Endpoint>> ParseEndpoints(std::string_view list) {
  std::vector<Endpoint> endpoints;
  for (const absl::string_view entry : absl::StrSplit(base::View(list), ',')) {
    ASSIGN_OR_RETURN(Endpoint endpoint, ParseEndpoint({entry.data(), entry.size()}));
    endpoints.push_back(std::move(endpoint));
  }
  RETURN_IF_ERROR(CheckList(list, endpoints));
  return endpoints;
}

absl::StatusOr<std::vector<Endpoint>> ParseHosts(std::string_view list, int port) {
  std::vector<Endpoint> endpoints;
  for (const absl::string_view entry : absl::StrSplit(base::View(list), ',')) {
    ASSIGN_OR_RETURN(std::string host, ParseHost({entry.data(), entry.size()}));
    endpoints.push_back({std::move(host), port});
  }
  RETURN_IF_ERROR(CheckList(list, endpoints));
  return endpoints;
}

bool IsLoopback(std::string_view host) {
  const std::string text(host);
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return text == "localhost";
}

bool IsWildcard(std::string_view host) { return host == "0.0.0.0" || host == "::"; }

std::vector<std::string> ToStrings(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  texts.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) texts.push_back(endpoint.ToString());
  return texts;
}

std::string JoinEndpoints(const std::vector<Endpoint>& endpoints) { return absl::StrJoin(ToStrings(endpoints), ","); }

}  // namespace regatta::cluster
