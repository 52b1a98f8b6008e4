// Runs the built `regatta` as a user does.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string text;  // stdout and stderr
};

Outcome Shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(absl::StrCat(command, " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  size_t n = 0;
  while ((n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) outcome.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

class RegattaMain : public testing::Test {
 protected:
  void SetUp() override {
    const char* bin = getenv("REGATTA_BIN");
    if (bin == nullptr || !fs::exists(absl::StrCat(bin, "/regatta"))) GTEST_SKIP() << "REGATTA_BIN is not set";
    folder_ = testing::TempDir() + "/regatta_main_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    // A copy, so that the test chooses what stands beside it.
    fs::copy_file(absl::StrCat(bin, "/regatta"), absl::StrCat(folder_, "/regatta"));
    regatta_ = absl::StrCat(folder_, "/regatta");
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path("/");
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // An executable beside regatta that prints its name and words and exits with 7.
  void Stand(const std::string& name) {
    Stand(name, "echo \"${0##*/}\"\nfor a in \"$@\"; do echo \"<$a>\"; done\nexit 7\n");
  }
  void Stand(const std::string& name, const std::string& script) {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path) << "#!/bin/sh\n" << script;
    fs::permissions(path, fs::perms::owner_all);
  }

  std::string folder_;
  std::string regatta_;
};

constexpr char kConfig[] = "model: dnn\nrunner: {epochs: 1, train_data_dir: train}\n";

// A server of S0, without the last variable.
constexpr char kServer[] =
    "TRAINING_ROLE=PSERVER PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.11:36000,127.0.0.12:36000 PADDLE_TRAINERS_NUM=2 "
    "POD_IP=127.0.0.12 PADDLE_PORT=36000 ";

TEST_F(RegattaMain, VersionTellsWhatItWasCompiledWith) {
  const Outcome out = Shell(absl::StrCat(regatta_, " version"));
  EXPECT_EQ(out.code, 0);
  EXPECT_TRUE(absl::StartsWith(out.text, "Regatta ")) << out.text;
  EXPECT_TRUE(absl::StrContains(out.text, ", compiled with\n    with_avx: ")) << out.text;
  for (const char* word : {"with_gpu: OFF\n", "with_double: OFF\n", "with_python: O", "with_rdma: OFF\n",
                           "with_timer: ", "commit: ", "compiler: ", "libtorch: ", "gRPC: 1."})
    EXPECT_TRUE(absl::StrContains(out.text, word)) << word;
}

TEST_F(RegattaMain, AloneAndHelpTeach) {
  for (const char* arguments : {"", " --help"}) {
    const Outcome out = Shell(regatta_ + arguments);
    EXPECT_EQ(out.code, 0);
    EXPECT_TRUE(absl::StrContains(out.text, "regatta train -m models/rank/dnn/config.yaml")) << out.text;
  }
}

// A node of our own that behaves as /dev/full does (1, 7).
TEST_F(RegattaMain, LostOutputIsExit1) {
  if (mknod("full", S_IFCHR | 0600, makedev(1, 7)) != 0 || !std::ofstream("full").is_open())
    GTEST_SKIP() << "may not make device nodes";
  for (const char* words :
       {"", "--help", "version", "data gen --help", "config --keys", "data gen --out d --samples 9", "launch --help"}) {
    const Outcome out = Shell(absl::StrCat("(", regatta_, " ", words, " 2>&1 >full)"));
    EXPECT_EQ(out.code, 1) << words;
    EXPECT_TRUE(absl::StrContains(out.text, "cannot write to standard output")) << words << ": " << out.text;
  }
}

TEST_F(RegattaMain, LoggingIsSetUp) {
  std::ofstream("x") << "label:1 idx:5\nlabel:1 idx:-5\n";
  const Outcome out = Shell(absl::StrCat(regatta_, " data check --label label --sparse idx --dense 0 x 2>&1"));
  EXPECT_EQ(out.code, 1);
  EXPECT_TRUE(absl::StrContains(out.text, "bad line skipped: x:2")) << out.text;
  EXPECT_FALSE(absl::StrContains(out.text, "InitGoogleLogging")) << out.text;
}

TEST_F(RegattaMain, WrongUsageIsExit2AndNamesTheNearest) {
  const Outcome typo = Shell(absl::StrCat(regatta_, " trian -m x"));
  EXPECT_EQ(typo.code, 2);
  EXPECT_TRUE(absl::StrContains(typo.text, "did you mean train?")) << typo.text;
  EXPECT_EQ(Shell(absl::StrCat(regatta_, " --nonsense")).code, 2);
  const Outcome inner = Shell(absl::StrCat(regatta_, " checkpoint lss x 2>&1"));
  EXPECT_EQ(inner.code, 2);
  EXPECT_EQ(inner.text, "regatta: unknown command 'checkpoint lss'; did you mean ls?\n");
  const Outcome far = Shell(absl::StrCat(regatta_, " data foobarbaz 2>&1"));
  EXPECT_EQ(far.code, 2);
  EXPECT_EQ(far.text, "regatta: unknown command 'data foobarbaz'; regatta data --help lists the commands\n");
  EXPECT_EQ(Shell(absl::StrCat(regatta_, " version extra")).code, 2);
}

TEST_F(RegattaMain, AMissingWorkerSaysWhatToDo) {
  std::ofstream(absl::StrCat(folder_, "/c.yaml")) << kConfig;
  const Outcome out = Shell(absl::StrCat(regatta_, " train -m c.yaml"));
  EXPECT_EQ(out.code, 2);
  EXPECT_TRUE(absl::StrContains(out.text, absl::StrCat(folder_.substr(folder_.rfind('/')), "/regatta-train")))
      << out.text;
}

TEST_F(RegattaMain, WorkerVerbsPassTheirArgumentsVerbatim) {
  Stand("regatta-train");
  const std::string link = absl::StrCat(folder_, "/elsewhere");
  fs::create_directory(link);
  fs::create_symlink(regatta_, absl::StrCat(link, "/r"));
  std::ofstream(absl::StrCat(link, "/a b.yaml")) << kConfig;
  const Outcome out = Shell(absl::StrCat("cd ", link, " && ./r infer -m 'a b.yaml' -o k='x=y' --is_cloud=1"));
  EXPECT_EQ(out.code, 7);
  EXPECT_EQ(out.text, "regatta-train\n<infer>\n<-m>\n<a b.yaml>\n<-o>\n<k=x=y>\n<--is_cloud=1>\n");
}

TEST_F(RegattaMain, WrongWordsAndValuesAreExit2BeforeTheWorkerIsLoaded) {
  Stand("regatta-train");
  std::ofstream(absl::StrCat(folder_, "/c.yaml")) << kConfig;
  for (const char* verb : {"train", "infer", "config"}) {
    for (const auto& [words, says] :
         {std::pair("-m none.yaml", "none.yaml"), std::pair("-m c.yaml ''", "unexpected ''"),
          std::pair("-m c.yaml -o runner.epochs=many", "runner.epochs"),
          std::pair("-m c.yaml -o model=dmm", "there is no model 'dmm'; the models are lr, ")}) {
      const Outcome out = Shell(absl::StrCat(regatta_, " ", verb, " ", words));
      EXPECT_EQ(out.code, 2) << out.text;
      EXPECT_TRUE(absl::StrContains(out.text, says)) << out.text;
    }
  }
}

TEST_F(RegattaMain, TrainIsAServerInTheServersRole) {
  Stand("regatta-train");
  Stand("regatta-pserver");
  std::ofstream(absl::StrCat(folder_, "/c.yaml")) << kConfig;
  const Outcome server = Shell(absl::StrCat(kServer, regatta_, " train -m c.yaml --is_cloud=1"));
  EXPECT_EQ(server.code, 7);
  EXPECT_EQ(server.text, "regatta-pserver\n<--role-from-environment>\n<-->\n<train>\n<-m>\n<c.yaml>\n<--is_cloud=1>\n");
  const Outcome insecure = Shell(absl::StrCat(kServer, "PADDLE_PSERVERS_IP_PORT_LIST=10.0.0.1:36000 POD_IP=10.0.0.1 ",
                                              regatta_, " train -m c.yaml --insecure"));
  EXPECT_TRUE(absl::StartsWith(insecure.text, "regatta-pserver\n<--role-from-environment>\n<--insecure>\n<-->\n"))
      << insecure.text;
  const Outcome by_yaml = Shell(absl::StrCat(kServer, "PADDLE_PSERVERS_IP_PORT_LIST=10.0.0.1:36000 POD_IP=10.0.0.1 ",
                                             regatta_, " train -m c.yaml -o runner.security.insecure=True"));
  EXPECT_TRUE(absl::StartsWith(by_yaml.text, "regatta-pserver\n<--role-from-environment>\n<--insecure>\n<-->\n"))
      << by_yaml.text;
  // Credentials are checked here and passed on as paths, those of the YAML and of the flags; variables stay variables.
  EXPECT_TRUE(
      absl::StrContains(Shell(absl::StrCat(kServer, regatta_, " train -m c.yaml --tls_key=k")).text, "--tls_ca"));
  for (const char* name : {"t", "c", "k", "a"}) std::ofstream(absl::StrCat(folder_, "/", name)) << std::string(64, 'x');
  for (const char* name : {"t", "k"}) fs::permissions(absl::StrCat(folder_, "/", name), fs::perms(0600));
  const Outcome guarded =
      Shell(absl::StrCat(kServer, "REGATTA_TLS_CERT=c ", regatta_,
                         " train -m c.yaml --token_file=t -o runner.security.tls_key=k -o runner.security.tls_ca=a"));
  EXPECT_TRUE(absl::StrContains(guarded.text, absl::StrCat("\n<--token_file=", fs::canonical(folder_).string(),
                                                           "/t>\n<--tls_key=", fs::canonical(folder_).string(), "/k>")))
      << guarded.text;
  const Outcome worker =
      Shell(absl::StrCat(kServer, "TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 ", regatta_, " train -m c.yaml"));
  EXPECT_EQ(worker.text, "regatta-train\n<train>\n<-m>\n<c.yaml>\n");
  // Only training has a place in a job, and asking about it has none.
  EXPECT_TRUE(absl::StartsWith(Shell(absl::StrCat(kServer, regatta_, " infer -m c.yaml")).text, "regatta-train\n"));
  EXPECT_TRUE(absl::StartsWith(Shell(absl::StrCat(kServer, regatta_, " train --help")).text, "regatta-train\n"));
  EXPECT_TRUE(absl::StartsWith(Shell(absl::StrCat(kServer, regatta_, " config -m c.yaml")).text, "regatta-train\n"));
}

TEST_F(RegattaMain, AWrongEnvironmentIsExit2BeforeAnythingStarts) {
  Stand("regatta-train");
  Stand("regatta-pserver");
  std::ofstream(absl::StrCat(folder_, "/c.yaml")) << kConfig;
  const struct {
    const char* environment;
    std::vector<const char*> words;
  } kCases[] = {
      {"TRAINING_ROLE=BOSS", {"PSERVER", "TRAINER"}},
      {"TRAINING_ROLE=PSERVER", {"PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "PADDLE_PORT"}},
      {"PADDLE_TRAINER_ENDPOINTS=a:1 PADDLE_CURRENT_ENDPOINT=a:1", {"collective", "not available yet"}},
      {"TRAINING_ROLE=PSERVER PADDLE_PSERVERS_IP_PORT_LIST=10.0.0.1:1 PADDLE_TRAINERS_NUM=1 PADDLE_PSERVER_ID=0",
       {"10.0.0.1", "--insecure"}},
      {"TRAINING_ROLE=TRAINER PADDLE_PSERVERS_IP_PORT_LIST=10.0.0.1:1 PADDLE_TRAINERS_NUM=1 PADDLE_TRAINER_ID=0",
       {"10.0.0.1", "--insecure"}},
      {"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1", {"rank 1 of 2", "not available yet"}},
  };
  for (const auto& c : kCases) {
    const Outcome out = Shell(absl::StrCat(c.environment, " ", regatta_, " train -m c.yaml"));
    EXPECT_EQ(out.code, 2) << out.text;
    for (const char* word : c.words) EXPECT_TRUE(absl::StrContains(out.text, word)) << out.text;
  }
  const Outcome no_file = Shell(absl::StrCat(kServer, regatta_, " train -m none.yaml"));
  EXPECT_EQ(no_file.code, 2);
  EXPECT_TRUE(absl::StrContains(no_file.text, "none.yaml")) << no_file.text;
  // What every worker would refuse a server refuses too, where the model alone does not know it.
  for (const auto& [words, says] :
       {std::pair("-o model=dmm", "-o: model is 'dmm': there is no model 'dmm'; the models are lr, "),
        std::pair("-o runner.epoch=1", "unknown key runner.epoch; did you mean runner.epochs?"),
        std::pair("-o epochs=1", "unknown key epochs; did you mean runner.epochs?"),
        std::pair("-o hyper_parameters.optimizer.clas=SGD", "did you mean hyper_parameters.optimizer.class?"),
        std::pair("-o runner.train_data_dir=", "runner.train_data_dir is not set")}) {
    const Outcome refused = Shell(absl::StrCat(kServer, regatta_, " train -m c.yaml ", words));
    EXPECT_EQ(refused.code, 2) << refused.text;
    EXPECT_TRUE(absl::StrContains(refused.text, says)) << refused.text;
  }
  EXPECT_EQ(Shell(absl::StrCat(kServer, regatta_,
                               " train -m c.yaml -o hyper_parameters.fc_sizes=[4] -o table_parameters.t.shard_num=1"))
                .code,
            7);
  // A misspelt flag is refused in a server as in a worker.
  const Outcome out = Shell(absl::StrCat(kServer, regatta_, " train -m c.yaml --resum"));
  EXPECT_EQ(out.code, 2);
  EXPECT_TRUE(absl::StrContains(out.text, "did you mean --resume?")) << out.text;
}

TEST_F(RegattaMain, PserverPassesItsFlags) {
  EXPECT_EQ(Shell(absl::StrCat(regatta_, " pserver")).code, 2);
  Stand("regatta-pserver");
  const Outcome out = Shell(absl::StrCat(regatta_, " pserver --port=7164 --ports_num 1 --help"));
  EXPECT_EQ(out.code, 7);
  EXPECT_EQ(out.text, "regatta-pserver\n<--port=7164>\n<--ports_num>\n<1>\n<--help>\n");
}

TEST_F(RegattaMain, PaddleAndFleetrunAreTheSameProgram) {
  Stand("regatta-train");
  Stand("regatta-pserver");
  const std::string paddle = absl::StrCat(folder_, "/paddle"), fleetrun = absl::StrCat(folder_, "/fleetrun");
  fs::create_symlink("regatta", paddle);
  fs::create_symlink("regatta", fleetrun);
  EXPECT_TRUE(absl::StartsWith(Shell(paddle + " version").text, "Regatta "));
  EXPECT_EQ(Shell(paddle + " pserver --port=7164").text, "regatta-pserver\n<--port=7164>\n");
  std::ofstream(absl::StrCat(folder_, "/c")) << kConfig;
  EXPECT_EQ(Shell(paddle + " train -m c").text, "regatta-train\n<train>\n<-m>\n<c>\n");
  EXPECT_EQ(Shell(paddle + " data").code, 2);
  EXPECT_TRUE(absl::StrContains(Shell(paddle + " data").text, "paddle pserver"));
  EXPECT_EQ(Shell(paddle).code, 0);
  EXPECT_EQ(Shell(fleetrun + " --help").code, 0);
  EXPECT_TRUE(absl::StrContains(Shell(fleetrun + " x.py").text, "--server_num=N"));
  EXPECT_TRUE(absl::StrContains(Shell(regatta_ + " launch --help").text, "regatta launch --server_num=2"));
}

// A job of a server and two workers, of which worker `killed` is killed at every start.
class LaunchedJob : public RegattaMain {
 protected:
  void SetUp() override {
    RegattaMain::SetUp();
    if (IsSkipped()) return;
    std::ofstream(absl::StrCat(folder_, "/c.yaml")) << kConfig;
    Stand("regatta-pserver", "exec sleep 60\n");
    Stand("regatta-train",
          "echo $PADDLE_TRAINER_ID >> starts\n"
          "[ $PADDLE_TRAINER_ID = $KILLED ] && { echo its last words; touch killed; kill -9 $$; }\n"
          "while [ ! -e killed ]; do sleep 0.01; done\n"
          "sleep 0.5; echo $PADDLE_TRAINER_ID >> ends\n");  // unless the launcher ends it before
  }
  Outcome Launch(int killed, const std::string& flags, const std::string& words) {
    for (const char* name : {"starts", "ends", "killed"}) fs::remove(name);
    return Shell(absl::StrCat("KILLED=", killed, " ", regatta_, " launch --server_num=1 --worker_num=2 --grace=0.1 ",
                              flags, " -- ", words));
  }
  // How many times `rank` is in a file of the above.
  static int Count(const std::string& file, int rank) {
    std::ifstream in(file);
    int count = 0;
    for (int other = 0; in >> other;) count += other == rank ? 1 : 0;
    return count;
  }
};

TEST_F(LaunchedJob, ThatMayShrinkGoesOnWithoutAKilledWorker) {
  for (const char* flags : {"", "--max_restarts=2"}) {
    const Outcome out = Launch(1, flags, "train -m c.yaml -o runner.on_worker_loss=shrink");
    EXPECT_EQ(out.code, 0) << out.text;
    EXPECT_TRUE(absl::StrContains(out.text, "was killed by signal 9 (SIGKILL)")) << out.text;
    EXPECT_TRUE(absl::StrContains(out.text, "the last lines of log/workerlog.1:\n  | its last words\n")) << out.text;
    EXPECT_TRUE(absl::StrContains(out.text, "the job goes on without worker 1 (runner.on_worker_loss: shrink)\n"))
        << out.text;
    EXPECT_EQ(Count("starts", 1), 1);
    EXPECT_EQ(Count("ends", 0), 1);
  }
  const Outcome first = Launch(0, "", "c.yaml -o runner.on_worker_loss=shrink");
  EXPECT_EQ(first.code, 137) << first.text;  // it would have saved
  EXPECT_FALSE(absl::StrContains(first.text, "goes on without")) << first.text;
  EXPECT_EQ(Count("ends", 1), 0);
}

TEST_F(LaunchedJob, EndsWithAWorkerThatCannotComeBackAndSaysWhy) {
  for (const auto& [words, why] :
       {std::pair("-o runner.ack=memory", "(with runner.ack: memory workers do not come back); "),
        std::pair("-o runner.on_worker_loss=fail", "(runner.on_worker_loss: fail); ")}) {
    const Outcome out = Launch(1, "--max_restarts=3", absl::StrCat("train -m c.yaml ", words));
    EXPECT_EQ(out.code, 137) << out.text;
    EXPECT_TRUE(absl::StrContains(out.text, absl::StrCat("(SIGKILL), and is not started again ", why))) << out.text;
    EXPECT_EQ(Count("starts", 1), 1) << words;
    EXPECT_EQ(Count("ends", 0), 0) << words;
  }
}

TEST_F(LaunchedJob, SaysThatTheRestartsAreUsedUp) {
  const Outcome out = Launch(1, "--max_restarts=1", "train -m c.yaml");
  EXPECT_EQ(out.code, 137) << out.text;
  EXPECT_TRUE(absl::StrContains(out.text, ", restart 1 of 1\n")) << out.text;
  EXPECT_TRUE(absl::StrContains(out.text, "and is not started again (--max_restarts=1 is used up); the last lines"))
      << out.text;
  EXPECT_EQ(Count("starts", 1), 2);
  const Outcome none = Launch(1, "", "train -m c.yaml");
  EXPECT_EQ(none.code, 137) << none.text;
  EXPECT_FALSE(absl::StrContains(none.text, "started again")) << none.text;
}

TEST_F(RegattaMain, KeysNeedNoWorker) {
  const Outcome out = Shell(absl::StrCat(regatta_, " config --keys"));
  EXPECT_EQ(out.code, 0);
  EXPECT_TRUE(absl::StrContains(out.text, "| runner.epochs | integer")) << out.text;
}

}  // namespace
}  // namespace regatta::cli
