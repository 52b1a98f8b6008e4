#include "cluster/status_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cluster/testing/variables.h"

namespace regatta::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
absl::StatusOr<StatusArgs> ParseStatus(std::vector<const char*> words, const Variables& variables = {}) {
  words.insert(words.begin(), "--status");
  return ParseStatusArgs(static_cast<int>(words.size()), words.data(), From(variables));
}

std::string StatusErrorOf(std::vector<const char*> words, const Variables& variables = {}) {
  const auto args = ParseStatus(std::move(words), variables);
  EXPECT_FALSE(args.ok());
  return std::string(args.status().message());
}

TEST(StatusArgs, FlagsComeBeforeTheEnvironment) {
  const auto args = ParseStatus({"--servers=127.0.0.1:1,127.0.0.2:2", "--json", "--timeout=0.5"},
                                {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.3:3"}});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(args->servers, ElementsAre("127.0.0.1:1", "127.0.0.2:2"));
  EXPECT_EQ(args->form, StatusForm::kJson);
  EXPECT_EQ(args->timeout.count(), 0.5);
}

// No role is needed: a job is looked at from outside.
TEST(StatusArgs, EveryFamilyNamesTheServers) {
  const struct {
    Variables variables;
    const char* server;
  } kCases[] = {
      {{{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.3:3"}}, "127.0.0.3:3"},
      {{{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.3:3"}, {"TRAINING_ROLE", "TRAINER"}}, "127.0.0.3:3"},
      {{{"PADDLE_PSERVER_IPS", "127.0.0.4"}}, "127.0.0.4:6174"},
      {{{"PADDLE_PSERVER_IPS", "127.0.0.4"}, {"PADDLE_PSERVER_PORT", "5"}}, "127.0.0.4:5"},
      {{{"PADDLE_INIT_PSERVERS", "127.0.0.5"}, {"PADDLE_INIT_PORT", "77"}}, "127.0.0.5:77"},
  };
  for (const auto& c : kCases) {
    const auto args = ParseStatus({}, c.variables);
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_THAT(args->servers, ElementsAre(c.server));
    EXPECT_EQ(args->form, StatusForm::kTable);
    EXPECT_EQ(args->timeout.count(), 5);
  }
}

TEST(StatusArgs, Errors) {
  EXPECT_THAT(StatusErrorOf({}), HasSubstr("--servers=host:port"));
  EXPECT_THAT(StatusErrorOf({"--servers=here"}), HasSubstr("--servers"));
  EXPECT_THAT(StatusErrorOf({"--servers=127.0.0.1:1", "--jsn"}), HasSubstr("did you mean --json?"));
  EXPECT_THAT(StatusErrorOf({"--servers=127.0.0.1:1", "extra"}), HasSubstr("extra"));
  EXPECT_THAT(StatusErrorOf({"--servers=127.0.0.1:1", "--timeout=0"}), HasSubstr("--timeout"));
  EXPECT_THAT(StatusErrorOf({}, {{"PADDLE_PSERVERS_IP_PORT_LIST", "x"}}), HasSubstr("PADDLE_PSERVERS_IP_PORT_LIST"));
}

TEST(StatusArgs, OtherMachinesNeedATrustedNetwork) {
  EXPECT_THAT(StatusErrorOf({"--servers=10.0.0.1:1"}), HasSubstr("--insecure"));
  EXPECT_TRUE(ParseStatus({"--servers=10.0.0.1:1", "--insecure"}).ok());
  EXPECT_TRUE(ParseStatus({"--servers=10.0.0.1:1"}, {{"REGATTA_INSECURE", "1"}}).ok());
}

TEST(StatusArgs, HelpTeaches) {
  const auto args = ParseStatus({"--help"});
  ASSERT_TRUE(args.ok());
  EXPECT_THAT(args->help, HasSubstr("PADDLE_PSERVERS_IP_PORT_LIST"));
}

}  // namespace
}  // namespace regatta::cluster
