// A TLS handshake of our own with whatever listens at an endpoint. gRPC says of a connection that it failed; this finds
// out whether the other side speaks TLS, and whether both know the same authority.
// Thread-safety: a pure function of what answers.
#pragma once

#include <chrono>
#include <string>

#include "base/status.h"
#include "cluster/credentials.h"

namespace regatta::wire {

// An error where what listens there will never fit `credentials` (null: none): it says why and what to do. OK where it
// fits, nobody is there, or nothing can be said yet. Takes `timeout` at most, but for a name's resolution.
absl::Status ExplainRefusal(const std::string& endpoint, const cluster::Credentials* credentials,
                            std::chrono::milliseconds timeout);

}  // namespace regatta::wire
