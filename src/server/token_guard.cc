#include "server/token_guard.h"

#include <glog/logging.h>
#include <openssl/crypto.h>

#include "wire/transport.h"

namespace regatta::server {
namespace {

constexpr std::chrono::seconds kQuiet(10);

// The length is no secret.
bool SameToken(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view TokenOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(wire::kTokenKey);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

}  // namespace

bool IsAdminVerb(ps::Verb verb) {
  switch (verb) {
    case ps::READ_ROWS:
    case ps::LOAD_ROWS:
    case ps::CLEAR:
    case ps::CLEAR_LANE:
    case ps::READ_DENSE:
    case ps::LOAD_DENSE:
    case ps::BEGIN_CUT:
    case ps::END_CUT:
      return true;
    default:
      return false;
  }
}

absl::Status CheckAccess(AccessLevel access, ps::Verb verb) {
  if (access == AccessLevel::kAdmin || !IsAdminVerb(verb)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      ps::Verb_Name(verb),
      " reads or replaces a whole table, which needs the admin token: give this process (worker 0 saves and "
      "loads) REGATTA_ADMIN_TOKEN_FILE as the servers have it"));
}

absl::Status CheckFirstWorker(AccessLevel access) {
  if (access == AccessLevel::kAdmin) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "worker 0 saves and loads whole tables, which needs the admin token: give it REGATTA_ADMIN_TOKEN_FILE as the "
      "servers have it");
}

TokenGuard::TokenGuard(std::shared_ptr<const cluster::Credentials> credentials)
    : credentials_(std::move(credentials)) {}

AccessLevel TokenGuard::OfToken(std::string_view authorization) const {
  if (credentials_ == nullptr) return AccessLevel::kAdmin;
  constexpr std::string_view prefix = wire::kTokenPrefix;
  if (!authorization.starts_with(prefix)) return AccessLevel::kNone;
  const std::string_view token = authorization.substr(prefix.size());
  const bool worker = SameToken(token, credentials_->token);
  const bool admin = SameToken(token, credentials_->own_token());
  return admin ? AccessLevel::kAdmin : worker ? AccessLevel::kWorker : AccessLevel::kNone;
}

AccessLevel TokenGuard::Of(const grpc::ServerContext& context) const {
  return credentials_ == nullptr ? AccessLevel::kAdmin : OfToken(TokenOf(context));
}

grpc::Status TokenGuard::Admit(const grpc::ServerContext& context) {
  if (Of(context) != AccessLevel::kNone) return grpc::Status::OK;
  const bool has_token = !TokenOf(context).empty();
  LogStranger(context.peer(), has_token);
  return {grpc::StatusCode::UNAUTHENTICATED,
          has_token ? "the server does not know this process's token: give both the same REGATTA_TOKEN_FILE (and "
                      "REGATTA_ADMIN_TOKEN_FILE), from one run of `regatta credentials init`"
                    : "the call carries no token: give this process REGATTA_TOKEN_FILE as the servers have it"};
}

void TokenGuard::LogStranger(const std::string& peer, bool has_token) {
  base::MutexLock lock(mu_);
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) {
    ++unsaid_;
    return;
  }
  LOG(WARNING) << "refused a call from " << peer << (has_token ? ": its token is not ours" : ": it carries no token")
               << (unsaid_ > 0 ? absl::StrCat(" (and ", unsaid_, " more since the last line)") : "");
  quiet_until_ = now + kQuiet;
  unsaid_ = 0;
}

}  // namespace regatta::server
