#include "settings/train_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::settings {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

absl::StatusOr<TrainArgs> Parse(Verb verb, std::vector<const char*> words) {
  words.insert(words.begin(), "verb");
  return ParseTrainArgs(verb, static_cast<int>(words.size()), words.data());
}

std::string ErrorOf(Verb verb, std::vector<const char*> words) {
  const auto args = Parse(verb, std::move(words));
  EXPECT_EQ(args.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(args.status().message());
}

TEST(TrainArgs, TakesConfigurationAndOverrides) {
  const auto args = Parse(Verb::kTrain, {"-m", "c.yaml", "-o", "runner.epochs=2", "-o", "a.b=[1, 2]", "--resume",
                                         "--json", "--trace", "t.json", "--is_cloud=1"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->config, "c.yaml");
  EXPECT_THAT(args->overrides, ElementsAre("runner.epochs=2", "a.b=[1, 2]"));
  EXPECT_TRUE(args->resume);
  EXPECT_TRUE(args->json);
  EXPECT_FALSE(args->overwrite);
  EXPECT_FALSE(args->dry_run);
  EXPECT_EQ(args->trace, "t.json");
}

TEST(TrainArgs, OverridesAreTakenVerbatim) {
  const char* const values[] = {"k=x=y",   "k=",      "k=[a,b]", "k={a: b}",   "k=-1", "k=\"q q\"",
                                "k='[1]'", "k=a,b;c", "k=%%",    "k=--resume", "k=\n", "k=ü"};
  for (const char* value : values) {
    const auto args = Parse(Verb::kTrain, {"-m", "c.yaml", "-o", value});
    ASSERT_TRUE(args.ok()) << value << args.status();
    EXPECT_THAT(args->overrides, ElementsAre(value));
  }
  // PaddleRec's -o takes several at once.
  const auto several = Parse(Verb::kTrain, {"-o", "a=1", "b=2", "-m", "c.yaml"});
  ASSERT_TRUE(several.ok());
  EXPECT_THAT(several->overrides, ElementsAre("a=1", "b=2"));
}

TEST(TrainArgs, IsCloudIsIgnoredInEverySpelling) {
  for (const std::vector<const char*>& words : {std::vector<const char*>{"--is_cloud", "1", "-m", "c.yaml"},
                                                {"--is_cloud=0", "-m", "c.yaml"},
                                                {"-m", "c.yaml", "--is_cloud"}}) {
    const auto args = Parse(Verb::kTrain, words);
    ASSERT_TRUE(args.ok()) << args.status();
    EXPECT_EQ(args->config, "c.yaml");
  }
}

TEST(TrainArgs, InferTakesPredictions) {
  EXPECT_EQ(Parse(Verb::kInfer, {"-m", "c.yaml", "--predictions", "p.txt"})->predictions, "p.txt");
  EXPECT_THAT(ErrorOf(Verb::kTrain, {"-m", "c.yaml", "--predictions", "p.txt"}), HasSubstr("--predictions"));
}

TEST(TrainArgs, OnlyTrainingTakesCredentials) {
  for (const char* flag : {"--insecure", "--tls_cert", "--token_file"}) {
    EXPECT_THAT(Parse(Verb::kTrain, {"--help"})->help, HasSubstr(flag));
    EXPECT_THAT(Parse(Verb::kInfer, {"--help"})->help, Not(HasSubstr(flag)));
  }
  EXPECT_THAT(ErrorOf(Verb::kInfer, {"-m", "c.yaml", "--insecure"}), HasSubstr("--insecure"));
}

TEST(TrainArgs, ErrorsTeach) {
  EXPECT_THAT(ErrorOf(Verb::kTrain, {}), HasSubstr("try: regatta train -m"));
  EXPECT_THAT(ErrorOf(Verb::kTrain, {"-m", "c.yaml", "--resum"}), HasSubstr("did you mean --resume?"));
  EXPECT_THAT(ErrorOf(Verb::kTrain, {"-m", "c.yaml", "--resume", "--overwrite"}), HasSubstr("--resume"));
  EXPECT_THAT(ErrorOf(Verb::kTrain, {"c.yaml"}), HasSubstr("unexpected 'c.yaml'"));
  EXPECT_THAT(ErrorOf(Verb::kTrain, {"-m"}), HasSubstr("--help"));
}

TEST(TrainArgs, HelpTeaches) {
  for (const Verb verb : {Verb::kTrain, Verb::kInfer, Verb::kConfig}) {
    const auto args = Parse(verb, {"--help"});
    ASSERT_TRUE(args.ok());
    EXPECT_THAT(args->help, AllOf(HasSubstr("Examples:"), HasSubstr("-o"), HasSubstr("-m")));
  }
}

TEST(TrainArgs, VerbsAreNamed) {
  EXPECT_EQ(*ParseVerb("infer"), Verb::kInfer);
  EXPECT_THAT(std::string(ParseVerb("tran").status().message()), HasSubstr("did you mean train?"));
}

TEST(TrainArgs, TheResumeCommandIsWhatWasTypedQuotedForAShell) {
  TrainArgs args;
  args.config = "my run/config.yaml";
  args.overrides = {"runner.epochs=2", "hyper_parameters.fc_sizes=[64, 32]", "runner.model_save_path=it's", "a="};
  EXPECT_EQ(ResumeCommand(args),
            "regatta train -m 'my run/config.yaml' -o runner.epochs=2 -o 'hyper_parameters.fc_sizes=[64, 32]' "
            "-o 'runner.model_save_path=it'\\''s' -o a= --resume");
  args = {};
  args.config = "c.yaml";
  args.insecure = true;
  args.metrics_port = 9100;
  EXPECT_EQ(ResumeCommand(args), "regatta train -m c.yaml --insecure --metrics_port=9100 --resume");
  args.insecure = false;
  args.credentials = {.token = "c/token", .ca = "my ca"};
  EXPECT_EQ(ResumeCommand(args),
            "regatta train -m c.yaml --token_file=c/token --tls_ca='my ca' --metrics_port=9100 --resume");
}

}  // namespace
}  // namespace regatta::settings
