#include "base/open_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/output_file.h"

namespace regatta::base {
namespace {
namespace fs = std::filesystem;

class OpenFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/open_file_test_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    ASSERT_TRUE(WriteFileAtomically(At("precious"), "precious").ok());
    fs::create_symlink("precious", At("link"));
    ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  }
  void TearDown() override {
    EXPECT_EQ(*ReadFile(At("precious")), "precious");
    ASSERT_TRUE(RemoveTree(folder_).ok());
  }
  std::string At(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(OpenFileTest, AFifoIsRefusedAtOnce) {
  for (const absl::Status& status : {ReadFile(At("fifo")).status(), OpenForReading(At("fifo")).status(),
                                     OpenOwn(At("fifo"), O_RDWR).status(), OpenOwn(At("fifo"), O_WRONLY).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(status.message(), At("fifo") + " is not a regular file (a FIFO)")) << status;
  }
}

TEST_F(OpenFileTest, SocketsDevicesAndFoldersAreRefused) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(At("socket").size(), sizeof address.sun_path);
  At("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(absl::StrContains(ReadFile(At("socket")).status().message(), "(a socket)"));
  close(fd);
  EXPECT_TRUE(absl::StrContains(ReadFile("/dev/null").status().message(), "(a device)"));
  EXPECT_TRUE(absl::StrContains(ReadFile(folder_).status().message(), "is a folder, not a file"));
  EXPECT_TRUE(absl::StrContains(OpenOwn(folder_, O_RDWR).status().message(), "is a folder, not a file"));
}

TEST_F(OpenFileTest, AnInputMayBeALink) { EXPECT_EQ(*ReadFile(At("link")), "precious"); }

TEST_F(OpenFileTest, AFileOfOursIsNoLink) {
  const absl::Status status = OpenOwn(At("link"), O_RDWR | O_CREAT, 0600).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "link is not a regular file (a symbolic link)")) << status;
  fs::create_symlink("nothing", At("dangling"));
  EXPECT_FALSE(OpenOwn(At("dangling"), O_RDWR | O_CREAT, 0600).ok());
  EXPECT_FALSE(fs::exists(At("nothing")));
}

TEST_F(OpenFileTest, ANewFileTakesThePlaceOfALink) {
  const auto fd = CreateOwn(At("link"), 0600);
  ASSERT_TRUE(fd.ok()) << fd.status();
  close(*fd);
  EXPECT_FALSE(fs::is_symlink(At("link")));
  EXPECT_FALSE(CreateOwn(folder_, 0600).ok());
}

TEST_F(OpenFileTest, TheTemporaryFileOfAnOutputFollowsNoLink) {
  fs::create_symlink("precious", At("out.npz.tmp"));
  auto file = OutputFile::Create(At("out.npz"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("new").ok());
  ASSERT_TRUE((*file)->Commit(OutputFile::Durability::kNamed).ok());
  EXPECT_EQ(*ReadFile(At("out.npz")), "new");
}

TEST_F(OpenFileTest, AFileThatIsReplacedMayHaveBeenALink) {
  ASSERT_TRUE(WriteFileAtomically(At("link"), "new").ok());
  EXPECT_EQ(*ReadFile(At("link")), "new");
  EXPECT_FALSE(fs::is_symlink(At("link")));
}

TEST_F(OpenFileTest, ANewFolderIsNoLink) {
  ASSERT_TRUE(MakeFolders(At("elsewhere")).ok());
  fs::create_directory_symlink("elsewhere", At("3.saving"));
  EXPECT_FALSE(MakeNewFolder(At("3.saving")).ok());
  EXPECT_TRUE(MakeNewFolder(At("4.saving")).ok());
  EXPECT_FALSE(MakeNewFolder(At("4.saving")).ok());
}

TEST_F(OpenFileTest, AFolderOfOursIsAFolderAndNoLink) {
  EXPECT_TRUE(absl::IsNotFound(CheckOwnFolder(At("none"))));
  EXPECT_EQ(MakeOwnFolder(At("none")), absl::OkStatus());
  EXPECT_EQ(CheckOwnFolder(At("none")), absl::OkStatus());
  EXPECT_EQ(MakeOwnFolder(At("none")), absl::OkStatus());
  fs::create_directory_symlink("none", At("planted"));
  fs::create_directory_symlink("nothing", At("dangling"));
  const std::pair<const char*, const char*> wrong[] = {
      {"planted", "a symbolic link"}, {"dangling", "a symbolic link"}, {"fifo", "a FIFO"}, {"precious", "a file"}};
  for (const auto& [name, kind] : wrong) {
    for (const absl::Status& status : {CheckOwnFolder(At(name)), MakeOwnFolder(At(name))}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat(At(name), " is not a folder (", kind, "): remove")))
          << status;
    }
  }
  EXPECT_FALSE(fs::exists(At("nothing")));
}

TEST_F(OpenFileTest, AFileOfOursIsNotReadThroughALink) {
  EXPECT_EQ(*ReadOwnFile(At("precious")), "precious");
  const absl::Status status = ReadOwnFile(At("link")).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "link is not a regular file (a symbolic link)")) << status;
}

}  // namespace
}  // namespace regatta::base
