// What one family of variables says about this process, with where it says so: the intermediate form between the
// environment and a ClusterSpec, in which families can be compared.
// Thread-safety: plain values, pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/cluster_spec.h"
#include "cluster/endpoint.h"
#include "cluster/variable.h"

namespace regatta::cluster {

// A value, and "NAME=text" as the user wrote it. A value without an origin is a default.
template <typename T>
struct Said {
  std::optional<T> value;
  std::string origin;

  bool stated() const { return value.has_value() && !origin.empty(); }
};

struct RoleHints {
  Family family = Family::kNone;
  std::vector<std::string> missing;  // needed names that are not set
  Said<Role> role;
  Said<std::vector<Endpoint>> servers;
  bool ports_stated = true;  // false: the servers' port is a default, which no other family need share
  Said<int> workers;
  Said<int> worker_index;
  Said<int> server_index;
  Said<std::string> own_host;
  Said<int> own_port;
  int ports_num = 1;
  int ports_num_for_sparse = 0;
  std::optional<int> threads;
  std::vector<std::string> notes;
};

// Each reads its family's variables, set or not; errors name the variable. Absent ones are noted in `missing`.
absl::StatusOr<RoleHints> ReadFleet(const Getenv& getenv);
absl::StatusOr<RoleHints> ReadFluid(const Getenv& getenv);
absl::StatusOr<RoleHints> ReadV2(const Getenv& getenv);
absl::StatusOr<RoleHints> ReadCollective(const Getenv& getenv);
absl::StatusOr<RoleHints> ReadMpi(const Getenv& getenv);

// OK where the two families say the same of everything that both state; else both variables with their values.
absl::Status CheckAgreement(const RoleHints& a, const RoleHints& b);

}  // namespace regatta::cluster
