#include "cluster/credentials.h"

#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "cluster/environment.h"
#include "cluster/testing/variables.h"

namespace regatta::cluster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kToken(64, 'a'), kAdmin(64, 'b');

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() : folder_(testing::TempDir() + "/regatta_credentials_test." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    files_ = {.token = Write("token", kToken + "\n"),
              .cert = Write("tls.crt", "certificate\n", 0644),
              .key = Write("tls.key", "key\n"),
              .ca = Write("ca.crt", "authority\n", 0644),
              .admin_token = ""};
  }
  ~CredentialsTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes, mode_t mode = 0600) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << bytes;
    chmod(path.c_str(), mode);
    return path;
  }
  std::string Error() const { return std::string(LoadCredentials(files_).status().message()); }

  const std::string folder_;
  CredentialFiles files_;
};

TEST_F(CredentialsTest, AreReadWhole) {
  auto read = LoadCredentials(files_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->token, kToken);
  EXPECT_EQ((*read)->own_token(), kToken);
  EXPECT_EQ((*read)->cert, "certificate\n");
  EXPECT_EQ((*read)->key, "key\n");
  EXPECT_EQ((*read)->ca, "authority\n");
  files_.admin_token = Write("admin", kAdmin);
  read = LoadCredentials(files_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)->token, kToken);
  EXPECT_EQ((*read)->own_token(), kAdmin);
  EXPECT_EQ(*LoadCredentials({}), nullptr);
}

TEST_F(CredentialsTest, AllOrNone) {
  for (size_t i = 0; i < 4; ++i) {
    CredentialFiles files = files_;
    files.*kCredentialNames[i].file = "";
    EXPECT_THAT(std::string(LoadCredentials(files).status().message()),
                AllOf(HasSubstr("missing"), HasSubstr(kCredentialNames[i].flag),
                      HasSubstr(kCredentialNames[i].variable), HasSubstr("regatta credentials init")));
  }
  EXPECT_THAT(std::string(LoadCredentials({.admin_token = "a"}).status().message()), HasSubstr("--tls_key"));
}

TEST_F(CredentialsTest, SecretsThatOthersCanReadAreRefused) {
  for (const auto file : {&CredentialFiles::token, &CredentialFiles::key}) {
    for (const mode_t mode : {0640, 0604, 0666, 0620}) {
      chmod((files_.*file).c_str(), mode);
      EXPECT_THAT(Error(), AllOf(HasSubstr(files_.*file), HasSubstr("chmod 600"))) << std::oct << mode;
    }
    chmod((files_.*file).c_str(), 0400);
    EXPECT_TRUE(LoadCredentials(files_).ok());
  }
  files_.admin_token = Write("admin", kAdmin, 0644);
  EXPECT_THAT(Error(), HasSubstr("chmod 600"));
}

TEST_F(CredentialsTest, BadTokensAreNamedByFileAndNeverShown) {
  for (const std::string& token :
       {std::string(31, 'x'), std::string(5000, 'x'), std::string(20, 'x') + " " + std::string(20, 'x'), std::string(),
        std::string(40, 'x') + "\xc3\xa9", std::string(20, 'x') + "\n" + std::string(20, 'x')}) {
    Write("token", token);
    EXPECT_THAT(Error(), AllOf(HasSubstr(files_.token), HasSubstr("32"), Not(HasSubstr("xxxx")))) << token.size();
  }
  files_.token = Write("token", kToken);
  files_.admin_token = Write("admin", kToken);
  EXPECT_THAT(Error(), AllOf(HasSubstr("same token"), Not(HasSubstr(kToken))));
}

TEST_F(CredentialsTest, MissingFilesAreNamed) {
  files_.ca = folder_ + "/none";
  EXPECT_THAT(Error(), AllOf(HasSubstr("tls_ca"), HasSubstr("none")));
  files_.ca = folder_;
  EXPECT_THAT(Error(), HasSubstr("tls_ca"));
  files_.token = folder_;
  EXPECT_THAT(Error(), AllOf(HasSubstr("token_file"), HasSubstr("is a folder, not a file")));
}

TEST_F(CredentialsTest, WhatIsSaidGoesBeforeTheEnvironment) {
  const Variables variables = {{"REGATTA_TOKEN_FILE", " t "}, {"REGATTA_TLS_CERT", "c"}, {"REGATTA_TLS_KEY", ""}};
  const CredentialFiles files = ReadCredentialFiles(From(variables), {.cert = "mine"});
  EXPECT_EQ(files, (CredentialFiles{.token = "t", .cert = "mine"}));
}

TEST_F(CredentialsTest, ChildrenGetAbsolutePaths) {
  EXPECT_THAT(CredentialFlags({.token = "/a/./t"}), ElementsAre("--token_file=/a/t"));
  const auto variables = CredentialVariables({.ca = "c"});
  ASSERT_EQ(variables.size(), 1u);
  EXPECT_EQ(variables[0].first, "REGATTA_TLS_CA");
  EXPECT_EQ(variables[0].second, (std::filesystem::current_path() / "c").string());
}

TEST_F(CredentialsTest, OpenEveryAddress) {
  Variables variables = {{"TRAINING_ROLE", "TRAINER"},
                         {"PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:36000"},
                         {"PADDLE_TRAINERS_NUM", "1"},
                         {"PADDLE_TRAINER_ID", "0"}};
  EXPECT_FALSE(ReadEnvironment(From(variables)).ok());
  for (const auto& [name, value] : CredentialVariables(files_)) variables[name] = value;
  const auto spec = ReadEnvironment(From(variables));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->network, Network::kGuarded);
  EXPECT_EQ(spec->credentials->token, kToken);
  // They are used where --insecure would do without.
  variables["REGATTA_INSECURE"] = "1";
  EXPECT_EQ(ReadEnvironment(From(variables), Network::kTrusted)->network, Network::kGuarded);
}

TEST_F(CredentialsTest, AFifoIsRefusedAtOnce) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const CredentialName& name : kCredentialNames) {
    const std::string before = std::exchange(files_.*name.file, fifo);
    EXPECT_THAT(Error(), HasSubstr("fifo is not a regular file (a FIFO)")) << name.flag;
    files_.*name.file = before;
  }
}

// In a process of its own: it holds for the whole process.
TEST_F(CredentialsTest, AProcessThatHasReadThemLeavesNoCoreDump) {
  const auto dumpable = [this](const Variables& variables) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_DUMPABLE, 1);
      const bool read = ReadAccess(From(variables), Access(Network::kGuarded, files_)).ok();
      _exit(read ? 20 + prctl(PR_GET_DUMPABLE) : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(dumpable({}), 20);
  EXPECT_EQ(dumpable({{"REGATTA_CORE_DUMPS", "0"}}), 20);
  EXPECT_EQ(dumpable({{"REGATTA_CORE_DUMPS", "1"}}), 21);
  EXPECT_EQ(dumpable({{"REGATTA_CORE_DUMPS", "maybe"}}), 1);
  files_ = {};
  EXPECT_EQ(dumpable({}), 21);  // it holds none
}

}  // namespace
}  // namespace regatta::cluster
