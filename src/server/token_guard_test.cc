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
  EXPECT_EQ(guard.OfToken("Bearer " + kToken), Standing::kWorker);
  EXPECT_EQ(guard.OfToken("Bearer " + kAdmin), Standing::kAdmin);
  for (const std::string& wrong :
       {std::string(), std::string("Bearer "), kToken, "bearer " + kToken, "Bearer " + kToken + "a",
        "Bearer " + kToken.substr(1), "Bearer  " + kToken, "Bearer " + kToken.substr(1) + "b", "Basic " + kToken})
    EXPECT_EQ(guard.OfToken(wrong), Standing::kStranger) << wrong;
}

TEST(TokenGuard, OneTokenIsTheAdminsToo) {
  const TokenGuard guard(With(""));
  EXPECT_EQ(guard.OfToken("Bearer " + kToken), Standing::kAdmin);
  EXPECT_EQ(guard.OfToken("Bearer "), Standing::kStranger);
  EXPECT_EQ(guard.OfToken("Bearer " + kAdmin), Standing::kStranger);
}

TEST(TokenGuard, WithoutCredentialsEverybodyIsAnAdmin) { EXPECT_EQ(TokenGuard(nullptr).OfToken(""), Standing::kAdmin); }

TEST(TokenGuard, WholeTablesAreForAdmins) {
  for (const ps::Verb verb : {ps::READ_ROWS, ps::LOAD_ROWS, ps::CLEAR_LANE, ps::READ_DENSE, ps::LOAD_DENSE}) {
    EXPECT_EQ(CheckStanding(Standing::kAdmin, verb), absl::OkStatus());
    const absl::Status refused = CheckStanding(Standing::kWorker, verb);
    EXPECT_TRUE(absl::IsPermissionDenied(refused));
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr(ps::Verb_Name(verb)), HasSubstr("REGATTA_ADMIN_TOKEN_FILE")));
  }
  for (const ps::Verb verb : {ps::PULL, ps::PUSH, ps::ADD, ps::PULL_DENSE, ps::PUSH_DENSE, ps::ADD_DENSE, ps::BEGIN,
                              ps::LEAVE, ps::COUNT_ROWS})
    EXPECT_EQ(CheckStanding(Standing::kWorker, verb), absl::OkStatus());
}

}  // namespace
}  // namespace regatta::server
