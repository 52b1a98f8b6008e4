#include "wire/certificate.h"

#include <gmock/gmock.h>

namespace regatta::wire {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

cluster::Credentials Made(const KeyedCertificate& authority, int days = 2) {
  const auto member = MakeCertificate(authority, {"localhost", "127.0.0.1", "::1", "*.job.svc"}, days);
  EXPECT_TRUE(member.ok()) << member.status();
  cluster::Credentials credentials;
  credentials.files = {.token = "t", .cert = "my.crt", .key = "my.key", .ca = "my.ca", .admin_token = ""};
  credentials.cert = member->cert;
  credentials.key = member->key;
  credentials.ca = authority.cert;
  return credentials;
}

std::string ErrorOf(const cluster::Credentials& credentials) {
  return std::string(CheckCertificate(credentials).message());
}

TEST(Certificate, WhatIsMadeHolds) {
  const auto authority = MakeAuthority(2);
  ASSERT_TRUE(authority.ok()) << authority.status();
  cluster::Credentials credentials = Made(*authority);
  EXPECT_EQ(CheckCertificate(credentials), absl::OkStatus());
  EXPECT_THAT(*EndOf(credentials.cert), testing::MatchesRegex("20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]"));
  EXPECT_THAT(credentials.key, HasSubstr("BEGIN PRIVATE KEY"));
  // A second authority beside the first changes nothing: how one is exchanged for another.
  credentials.ca = MakeAuthority(2)->cert + credentials.ca;
  EXPECT_EQ(CheckCertificate(credentials), absl::OkStatus());
}

TEST(Certificate, WhatDoesNotFitIsNamed) {
  const auto authority = MakeAuthority(2), other = MakeAuthority(2);
  const cluster::Credentials good = Made(*authority);
  cluster::Credentials bad = good;
  bad.key = Made(*authority).key;
  EXPECT_THAT(ErrorOf(bad), AllOf(HasSubstr("my.key is not the key of my.crt"), Not(HasSubstr("PRIVATE KEY-"))));
  bad = good;
  bad.ca = other->cert;
  EXPECT_THAT(ErrorOf(bad), AllOf(HasSubstr("my.crt is not signed by"), HasSubstr("my.ca")));
  bad = good;
  bad.cert = "nonsense";
  EXPECT_THAT(ErrorOf(bad), HasSubstr("my.crt holds no certificate"));
  bad = good;
  bad.key = bad.cert;
  EXPECT_THAT(ErrorOf(bad), HasSubstr("my.key holds no private key"));
  bad = good;
  bad.ca = bad.key;
  EXPECT_THAT(ErrorOf(bad), HasSubstr("my.ca holds no certificate"));
}

TEST(Certificate, AnEndedOneIsRefused) {
  const auto authority = MakeAuthority(2);
  EXPECT_THAT(ErrorOf(Made(*authority, -1)), AllOf(HasSubstr("my.crt"), HasSubstr("ended on"), HasSubstr("init")));
}

}  // namespace
}  // namespace regatta::wire
