#include "launch/launch_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::launch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<LaunchArgs> Parse(std::vector<const char*> words, Flavour flavour = Flavour::kLaunch) {
  words.insert(words.begin(), "launch");
  return ParseLaunchArgs(flavour, static_cast<int>(words.size()), words.data());
}

std::string ErrorOf(std::vector<const char*> words, Flavour flavour = Flavour::kLaunch) {
  const auto args = Parse(std::move(words), flavour);
  EXPECT_FALSE(args.ok());
  return std::string(args.status().message());
}

TEST(LaunchArgs, CountsAndCommand) {
  const auto args = Parse({"--server_num=2", "--worker_num", "3", "--", "train", "-m", "c.yaml", "--server_num=9"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->server_num, 2);
  EXPECT_EQ(args->worker_num, 3);
  EXPECT_FALSE(args->by_lists());
  EXPECT_EQ(args->log_dir, "log");
  EXPECT_EQ(args->access.network, cluster::Network::kLoopbackOnly);
  EXPECT_THAT(args->command, ElementsAre("train", "-m", "c.yaml", "--server_num=9"));
}

TEST(LaunchArgs, TheCommandBeginsAtTheFirstWordThatIsNoFlag) {
  const auto args = Parse({"--worker_num=1", "--server_num", "1", "--insecure", "tools/static_ps_trainer.py", "-m",
                           "c.yaml", "--", "--log_dir=x"},
                          Flavour::kFleetrun);
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->access.network, cluster::Network::kTrusted);
  EXPECT_EQ(args->log_dir, "log");
  EXPECT_THAT(args->command, ElementsAre("tools/static_ps_trainer.py", "-m", "c.yaml", "--", "--log_dir=x"));
}

TEST(LaunchArgs, Lists) {
  const auto args = Parse({"--servers=127.0.0.11:36200,127.0.0.12:36200", "--workers", "127.0.0.11:36100",
                           "--log_dir=log2", "--grace=1.5", "--", "x"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_TRUE(args->by_lists());
  EXPECT_EQ(args->server_num, 2);
  EXPECT_EQ(args->worker_num, 1);
  EXPECT_EQ(args->servers[1].ToString(), "127.0.0.12:36200");
  EXPECT_EQ(args->log_dir, "log2");
  EXPECT_EQ(args->grace, 1.5);
  EXPECT_TRUE(Parse({"--server_num=1", "--servers=a:1", "--workers=a:2", "--", "x"}).ok());
  EXPECT_THAT(ErrorOf({"--server_num=2", "--servers=a:1", "--workers=a:2", "--", "x"}),
              AllOf(HasSubstr("--server_num=2"), HasSubstr("--servers=a:1")));
  EXPECT_THAT(ErrorOf({"--servers=a:1", "--", "x"}), HasSubstr("--workers is missing"));
  EXPECT_THAT(ErrorOf({"--workers=a:1", "--", "x"}), HasSubstr("--servers is missing"));
  EXPECT_THAT(ErrorOf({"--servers=a:1,a:1", "--workers=a:2", "--", "x"}), HasSubstr("--servers: a:1 is twice"));
  EXPECT_THAT(ErrorOf({"--servers=a:1", "--workers=a", "--", "x"}), HasSubstr("--workers: 'a' has no port"));
}

TEST(LaunchArgs, WrongOnesSayWhatToType) {
  EXPECT_THAT(ErrorOf({"--", "train"}), AllOf(HasSubstr("--server_num=N"), HasSubstr("--servers=")));
  EXPECT_THAT(ErrorOf({"--server_num=1", "--", "train"}), HasSubstr("--worker_num=N"));
  EXPECT_THAT(ErrorOf({"--server_num=1", "--worker_num=1"}), HasSubstr("-- train -m config.yaml"));
  EXPECT_THAT(ErrorOf({"--server_num=1", "--worker_num=1"}, Flavour::kFleetrun), HasSubstr("fleetrun: nothing to run"));
  for (const char* flag :
       {"--server_num=0", "--server_num=x", "--worker_num=-1", "--worker_num=5000", "--grace=-1", "--grace=nan"})
    EXPECT_THAT(ErrorOf({"--server_num=1", "--worker_num=1", flag, "--", "x"}), HasSubstr("--help")) << flag;
  EXPECT_THAT(ErrorOf({"--server_nun=1", "--worker_num=1", "--", "x"}), HasSubstr("did you mean --server_num?"));
}

TEST(LaunchArgs, WhatIsNotAvailableYetIsRefusedByName) {
  for (const char* flag : {"--hosts=a", "--hostfile=f", "--job_dispatch_package=d", "--job_workspace=w", "--collective",
                           "--gpus=0", "--ips=a", "--nproc_per_node=2"}) {
    const std::string name = std::string(flag).substr(0, std::string(flag).find('='));
    for (const Flavour flavour : {Flavour::kLaunch, Flavour::kFleetrun})
      EXPECT_THAT(ErrorOf({flag, "train.py"}, flavour), AllOf(HasSubstr(name), HasSubstr("not available yet"))) << flag;
  }
  EXPECT_THAT(ErrorOf({"--hosts", "a", "--", "train"}), HasSubstr("--hosts"));
  // Behind the command they are the command's.
  EXPECT_TRUE(Parse({"--server_num=1", "--worker_num=1", "x", "--gpus=0"}).ok());
}

TEST(LaunchArgs, HelpTeaches) {
  EXPECT_THAT(Parse({"--help"})->help, AllOf(HasSubstr("regatta launch --server_num=2"), HasSubstr("Exit codes")));
  EXPECT_THAT(Parse({"-h"}, Flavour::kFleetrun)->help, HasSubstr("fleetrun --worker_num=1"));
  EXPECT_THAT(Parse({"--server_num=1", "--worker_num=1", "x", "--help"})->help, "");
}

}  // namespace
}  // namespace regatta::launch
