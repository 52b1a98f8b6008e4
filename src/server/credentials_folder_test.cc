#include "server/credentials_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/failpoint.h"
#include "base/file.h"
#include "wire/certificate.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CredentialsFolderTest : public testing::Test {
 protected:
  CredentialsFolderTest() : root_(testing::TempDir() + "regatta_credentials_folder." + std::to_string(getpid())) {
    args_.folder = root_ + "/a/b";
    args_.hosts = {"localhost", "127.0.0.1", "::1", "10.0.0.7"};
  }
  ~CredentialsFolderTest() override { fs::remove_all(root_); }

  static unsigned ModeOf(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  std::string In(const std::string& name) const { return args_.folder + "/" + name; }
  size_t Siblings() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root_ + "/a")) ++count;
    return count;
  }

  const std::string root_;
  cluster::CredentialsArgs args_;
};

TEST_F(CredentialsFolderTest, HoldsAllThatProcessesNeed) {
  ASSERT_EQ(MakeCredentials(args_), absl::OkStatus());
  EXPECT_EQ(ModeOf(args_.folder), 0700u);
  for (const char* secret : {"ca.key", "tls.key", "token", "admin_token"}) EXPECT_EQ(ModeOf(In(secret)), 0600u);
  const auto credentials = cluster::LoadCredentials(FilesIn(args_.folder));
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  EXPECT_EQ(wire::CheckCertificate(**credentials), absl::OkStatus());
  EXPECT_EQ((*credentials)->token.size(), 64u);
  EXPECT_NE((*credentials)->token, (*credentials)->admin_token);
  const auto text = DescribeCredentials(args_);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, AllOf(HasSubstr("REGATTA_TLS_KEY=" + In("tls.key")), HasSubstr("10.0.0.7"),
                           Not(HasSubstr((*credentials)->token)), Not(HasSubstr((*credentials)->admin_token)),
                           Not(HasSubstr("PRIVATE"))));
}

TEST_F(CredentialsFolderTest, IsReplacedOnlyWhenAsked) {
  ASSERT_EQ(MakeCredentials(args_), absl::OkStatus());
  const std::string token = *base::ReadFile(In("token"));
  EXPECT_TRUE(absl::IsAlreadyExists(MakeCredentials(args_)));
  EXPECT_EQ(*base::ReadFile(In("token")), token);
  args_.overwrite = true;
  EXPECT_EQ(MakeCredentials(args_), absl::OkStatus());
  EXPECT_NE(*base::ReadFile(In("token")), token);
  EXPECT_EQ(Siblings(), 1u);  // nothing is left beside it
  std::ofstream(In("thesis.txt")) << "years of work";
  const absl::Status refused = MakeCredentials(args_);
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("thesis.txt"));
  EXPECT_TRUE(base::Exists(In("thesis.txt")));
}

TEST_F(CredentialsFolderTest, IsMadeWholeOrNotAtAll) {
  for (const char* failpoint : {"file.write", "file.fsync", "file.rename"}) {
    ASSERT_EQ(base::ArmFailpoints(absl::StrCat(failpoint, "=error")), absl::OkStatus());
    EXPECT_FALSE(MakeCredentials(args_).ok()) << failpoint;
    ASSERT_EQ(base::ArmFailpoints(""), absl::OkStatus());
    EXPECT_EQ(Siblings(), 0u) << failpoint;
  }
}

}  // namespace
}  // namespace regatta::server
