#include "cluster/pserver_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cluster/testing/variables.h"

namespace regatta::cluster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<PserverArgs> ParsePserver(std::vector<const char*> words, const Variables& variables = {}) {
  words.insert(words.begin(), "regatta-pserver");
  return ParsePserverArgs(static_cast<int>(words.size()), words.data(), From(variables));
}

std::string PserverErrorOf(std::vector<const char*> words, const Variables& variables = {}) {
  const auto args = ParsePserver(std::move(words), variables);
  EXPECT_FALSE(args.ok());
  return std::string(args.status().message());
}

TEST(PserverArgs, DefaultsAreV2s) {
  const auto args = ParsePserver({});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->spec.role, Role::kServer);
  EXPECT_EQ(args->spec.workers, 1);
  EXPECT_EQ(args->spec.endpoint, "127.0.0.1:7164");
  EXPECT_THAT(args->listen.dense, ElementsAre("127.0.0.1:7164"));
  EXPECT_THAT(args->listen.sparse, ElementsAre("127.0.0.1:7165"));
  EXPECT_THAT(args->spec.servers, ElementsAre());
  EXPECT_EQ(args->help, "");
}

TEST(PserverArgs, FlagsInBothSpellings) {
  const auto args =
      ParsePserver({"--port=9000", "--ports_num", "2", "--ports_num_for_sparse=3", "--num_gradient_servers=4",
                    "--host=127.0.0.9", "--load=model/3", "--log_dir", "l", "--metrics_port=9100"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->spec.workers, 4);
  EXPECT_THAT(args->listen.dense, ElementsAre("127.0.0.9:9000", "127.0.0.9:9001"));
  EXPECT_THAT(args->listen.sparse, ElementsAre("127.0.0.9:9002", "127.0.0.9:9003", "127.0.0.9:9004"));
  EXPECT_EQ(args->load, "model/3");
  EXPECT_EQ(args->log_dir, "l");
  EXPECT_EQ(args->metrics_port, 9100);
  EXPECT_THAT(ParsePserver({"--ports_num_for_sparse=0"})->listen.sparse, ElementsAre("127.0.0.1:7164"));
}

TEST(PserverArgs, TheEnvironmentGivesDefaultsAndFlagsWin) {
  const Variables variables = {{"PADDLE_INIT_PORT", "8000"},
                               {"PADDLE_INIT_PORTS_NUM", "2"},
                               {"PADDLE_INIT_PORTS_NUM_FOR_SPARSE", "0"},
                               {"PADDLE_INIT_NUM_GRADIENT_SERVERS", "5"},
                               {"PADDLE_INIT_PSERVERS", "127.0.0.1"},
                               {"TRAINING_ROLE", "TRAINER"}};
  const auto args = ParsePserver({}, variables);
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(args->listen.dense, ElementsAre("127.0.0.1:8000", "127.0.0.1:8001"));
  EXPECT_EQ(args->spec.workers, 5);
  EXPECT_EQ(ParsePserver({"--num_gradient_servers=1"}, variables)->spec.workers, 1);
  EXPECT_THAT(PserverErrorOf({}, {{"PADDLE_INIT_PORT", "x"}}), HasSubstr("PADDLE_INIT_PORT=x"));
}

TEST(PserverArgs, TheMetricsPortMayComeFromTheEnvironment) {
  EXPECT_EQ(ParsePserver({})->metrics_port, std::nullopt);
  EXPECT_EQ(ParsePserver({"--metrics_port=0"})->metrics_port, 0);
  EXPECT_EQ(ParsePserver({}, {{"REGATTA_METRICS_PORT", "9100"}})->metrics_port, 9100);
  EXPECT_EQ(ParsePserver({"--metrics_port=1"}, {{"REGATTA_METRICS_PORT", "9100"}})->metrics_port, 1);
  EXPECT_THAT(PserverErrorOf({}, {{"REGATTA_METRICS_PORT", "70000"}}), HasSubstr("REGATTA_METRICS_PORT=70000"));
  EXPECT_THAT(PserverErrorOf({"--metrics_port=70000"}), HasSubstr("--metrics_port"));
}

TEST(PserverArgs, WrongOnesSayWhatToDo) {
  EXPECT_THAT(PserverErrorOf({"--port=0"}), HasSubstr("--port"));
  EXPECT_THAT(PserverErrorOf({"--port=x"}), HasSubstr("--port"));
  EXPECT_THAT(PserverErrorOf({"--port=65535"}), AllOf(HasSubstr("65535"), HasSubstr("65536")));
  EXPECT_THAT(PserverErrorOf({"--ports_num=0"}), HasSubstr("--ports_num"));
  EXPECT_THAT(PserverErrorOf({"--num_gradient_servers=0"}), HasSubstr("--num_gradient_servers"));
  EXPECT_THAT(PserverErrorOf({"--num_gradient_server=2"}), HasSubstr("did you mean --num_gradient_servers?"));
  EXPECT_THAT(PserverErrorOf({"stray"}), HasSubstr("'stray'"));
  EXPECT_THAT(PserverErrorOf({"--", "train"}), HasSubstr("'--'"));
  EXPECT_THAT(PserverErrorOf({"--host=a b"}), HasSubstr("--host"));
  EXPECT_THAT(PserverErrorOf({"--log_limit=0"}), HasSubstr("--log_limit"));
  EXPECT_THAT(PserverErrorOf({"--push_memory=0"}), HasSubstr("--push_memory"));
  EXPECT_THAT(PserverErrorOf({"--lease_seconds=0"}), HasSubstr("--lease_seconds"));
  EXPECT_THAT(PserverErrorOf({"--data_dir=d", "--lease_seconds=nan"}), HasSubstr("--lease_seconds"));
  EXPECT_THAT(PserverErrorOf({"--lease_seconds=5"}), AllOf(HasSubstr("--lease_seconds"), HasSubstr("--data_dir")));
  EXPECT_THAT(PserverErrorOf({"--log_limit=5"}), AllOf(HasSubstr("--log_limit"), HasSubstr("--data_dir")));
  EXPECT_THAT(PserverErrorOf({}, {{"REGATTA_JOB_SINCE", "nan"}}), HasSubstr("REGATTA_JOB_SINCE=nan"));
  EXPECT_THAT(PserverErrorOf({}, {{"REGATTA_LEASE_SECONDS", "soon"}}), HasSubstr("REGATTA_LEASE_SECONDS=soon"));
  EXPECT_EQ(ParsePserver({}, {{"REGATTA_LEASE_SECONDS", "2.5"}})->lease, 2.5);
  EXPECT_EQ(ParsePserver({})->lease, 10);
  EXPECT_THAT(PserverErrorOf({"--checkpoint_root", "d"}), HasSubstr("not available yet"));
}

TEST(PserverArgs, OtherAddressesNeedCredentialsOrATrustedNetwork) {
  EXPECT_THAT(PserverErrorOf({"--host=0.0.0.0"}), AllOf(HasSubstr("--host"), HasSubstr("--insecure")));
  EXPECT_EQ(ParsePserver({"--host=0.0.0.0", "--insecure"})->spec.network, Network::kTrusted);
  EXPECT_TRUE(ParsePserver({"--host=10.0.0.1"}, {{"REGATTA_INSECURE", "1"}}).ok());
  EXPECT_THAT(PserverErrorOf({}, {{"REGATTA_TLS_CERT", "c"}}), HasSubstr("REGATTA_TLS_KEY"));
  EXPECT_THAT(PserverErrorOf({"--tls_cert=c"}), HasSubstr("--tls_key"));
}

TEST(PserverArgs, TheRoleMayComeFromTheEnvironment) {
  const Variables variables = {{"TRAINING_ROLE", "PSERVER"},
                               {"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.11:36000,127.0.0.12:36000"},
                               {"PADDLE_TRAINERS_NUM", "2"},
                               {"POD_IP", "127.0.0.12"},
                               {"PADDLE_PORT", "36000"}};
  const auto args = ParsePserver({"--role-from-environment", "--", "train", "-m", "c.yaml", "--", "x"}, variables);
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->spec.index, 1);
  EXPECT_EQ(args->spec.workers, 2);
  EXPECT_THAT(args->listen.dense, ElementsAre("127.0.0.12:36000"));
  EXPECT_THAT(args->listen.sparse, ElementsAre("127.0.0.12:36000"));
  EXPECT_THAT(args->command, ElementsAre("train", "-m", "c.yaml", "--", "x"));
  EXPECT_THAT(PserverErrorOf({"--role-from-environment"}),
              AllOf(HasSubstr("local"), HasSubstr("TRAINING_ROLE=PSERVER")));
  Variables far = variables;
  far["PADDLE_PSERVERS_IP_PORT_LIST"] = "10.0.0.1:36000";
  far["POD_IP"] = "10.0.0.1";
  EXPECT_THAT(PserverErrorOf({"--role-from-environment"}, far), HasSubstr("--insecure"));
  EXPECT_TRUE(ParsePserver({"--role-from-environment", "--insecure"}, far).ok());
}

TEST(PserverArgs, HelpTeaches) {
  const auto args = ParsePserver({"--help"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(args->help, AllOf(HasSubstr("--num_gradient_servers"), HasSubstr("Examples:"), HasSubstr("7164")));
}

}  // namespace
}  // namespace regatta::cluster
