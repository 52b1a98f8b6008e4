// Who may call a server, by the token that a call carries. Workers train and look; admins read and replace whole tables
// too. Without credentials everybody is an admin: then only this machine, or a network that the user trusts, gets here.
// Thread-safety: all methods are concurrent.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/mutex.h"
#include "base/status.h"
#include "cluster/credentials.h"
#include "wire/ps.pb.h"

namespace regatta::server {

enum class AccessLevel : uint8_t { kNone, kWorker, kAdmin };

// Whether a lane's verb needs an admin.
bool IsAdminVerb(ps::Verb verb);
// PERMISSION_DENIED, saying what to do, if `access` is not enough for it.
absl::Status CheckAccess(AccessLevel access, ps::Verb verb);
// The same of worker 0, which saves and loads for all: told when it comes, not after its first epoch.
absl::Status CheckFirstWorker(AccessLevel access);

class TokenGuard {
 public:
  // `credentials` null: everybody may do everything.
  explicit TokenGuard(std::shared_ptr<const cluster::Credentials> credentials);

  AccessLevel Of(const grpc::ServerContext& context) const;
  // `authorization` is the metadata's value, "Bearer …". Takes the same time for every token of a length.
  AccessLevel OfToken(std::string_view authorization) const;
  // UNAUTHENTICATED for a stranger, whose address is logged: a line in ten seconds, with the number of those between.
  grpc::Status Admit(const grpc::ServerContext& context);

 private:
  void LogStranger(const std::string& peer, bool has_token);

  const std::shared_ptr<const cluster::Credentials> credentials_;
  base::Mutex mu_;
  std::chrono::steady_clock::time_point quiet_until_ ABSL_GUARDED_BY(mu_);
  uint64_t unsaid_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace regatta::server
