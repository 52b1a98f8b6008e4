// Where a server listens; several ports spread its lanes.
// Thread-safety: a plain value.
#pragma once

#include <string>
#include <vector>

namespace regatta::client {

struct ServerAddress {
  std::vector<std::string> dense;   // host:port; the first carries the control verbs too
  std::vector<std::string> sparse;  // empty: as dense
};

}  // namespace regatta::client
