// Which addresses a process may use, and with what it proves itself there.
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cluster/credentials.h"

namespace regatta::cluster {

enum class Network : uint8_t {
  kLoopbackOnly,
  kTrusted,  // addresses outside this machine too, in the clear: --insecure
  kGuarded,  // the same with a token and TLS; what credentials make of the two above
};

// What flags and configuration say; ReadAccess (environment.h) adds the environment and reads the files.
struct Access {
  Access() = default;
  Access(Network network_in) : network(network_in) {}  // NOLINT: without credentials it says everything
  Access(Network network_in, CredentialFiles files_in) : network(network_in), files(std::move(files_in)) {}

  Network network = Network::kLoopbackOnly;
  CredentialFiles files;
  std::shared_ptr<const Credentials> credentials;  // null: none
};

}  // namespace regatta::cluster
