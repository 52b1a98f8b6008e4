#include "server/token_guard.h"

#include <gmock/gmock.h>

namespace regatta::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kToken(64, 'a'), kAdmin(64, 'b');

std::shared_ptr<const cluster::Credentials> With(const std::string& admin_token) {
  auto credentials = std::make_shared<cluster::Credentials>();
  credentials->token = kToken;
  credentials->admin_token = admin_token;
  return credentials;
}

TEST(TokenGuard, TokensSayWhoCalls) {
  const TokenGuard guard(With(kAdmin));
  EXPECT_EQ(guard.OfToken("Bearer " + kToken), AccessLevel::kWorker);
  EXPECT_EQ(guard.OfToken("Bearer " + kAdmin), AccessLevel::kAdmin);
  for (const std::string& wrong :
       {std::string(), std::string("Bearer "), kToken, "bearer " + kToken, "Bearer " + kToken + "a",
        "Bearer " + kToken.substr(1), "Bearer  " + kToken, "Bearer " + kToken.substr(1) + "b", "Basic " + kToken})
    EXPECT_EQ(guard.OfToken(wrong), AccessLevel::kNone) << wrong;
}

TEST(TokenGuard, OneTokenIsTheAdminsToo) {
  const TokenGuard guard(With(""));
  EXPECT_EQ(guard.OfToken("Bearer " + kToken), AccessLevel::kAdmin);
  EXPECT_EQ(guard.OfToken("Bearer "), AccessLevel::kNone);
  EXPECT_EQ(guard.OfToken("Bearer " + kAdmin), AccessLevel::kNone);
}

TEST(TokenGuard, WithoutCredentialsEverybodyIsAnAdmin) {
  EXPECT_EQ(TokenGuard(nullptr).OfToken(""), AccessLevel::kAdmin);
}

TEST(TokenGuard, WholeTablesAreForAdmins) {
  for (const ps::Verb verb : {ps::READ_ROWS, ps::LOAD_ROWS, ps::CLEAR_LANE, ps::READ_DENSE, ps::LOAD_DENSE}) {
    EXPECT_EQ(CheckAccess(AccessLevel::kAdmin, verb), absl::OkStatus());
    const absl::Status refused = CheckAccess(AccessLevel::kWorker, verb);
    EXPECT_TRUE(absl::IsPermissionDenied(refused));
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr(ps::Verb_Name(verb)), HasSubstr("REGATTA_ADMIN_TOKEN_FILE")));
  }
  for (const ps::Verb verb : {ps::PULL, ps::PUSH, ps::ADD, ps::PULL_DENSE, ps::PUSH_DENSE, ps::ADD_DENSE, ps::BEGIN,
                              ps::LEAVE, ps::COUNT_ROWS})
    EXPECT_EQ(CheckAccess(AccessLevel::kWorker, verb), absl::OkStatus());
}

}  // namespace
}  // namespace regatta::server
