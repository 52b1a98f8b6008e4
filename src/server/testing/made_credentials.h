// Credentials for tests that listen on loopback, without files.
#pragma once

#include <glog/logging.h>

#include <memory>
#include <string>

#include "cluster/credentials.h"
#include "wire/certificate.h"

namespace regatta::server {

enum class Tokens { kOne, kAdminToo };

inline std::shared_ptr<cluster::Credentials> MadeCredentials(Tokens tokens = Tokens::kOne) {
  const auto authority = wire::MakeAuthority(1);
  CHECK(authority.ok()) << authority.status();
  const auto member = wire::MakeCertificate(*authority, {"localhost", "127.0.0.1", "::1"}, 1);
  CHECK(member.ok()) << member.status();
  auto made = std::make_shared<cluster::Credentials>();
  made->files = {.token = "t", .cert = "c", .key = "k", .ca = "a", .admin_token = "m"};
  made->token = std::string(64, 't');
  if (tokens == Tokens::kAdminToo) made->admin_token = std::string(64, 'm');
  made->cert = member->cert;
  made->key = member->key;
  made->ca = authority->cert;
  return made;
}

}  // namespace regatta::server
