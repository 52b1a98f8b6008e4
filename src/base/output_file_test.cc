#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/failpoint.h"

namespace regatta::base {
namespace {
namespace fs = std::filesystem;

absl::Status WriteOutput(const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto file, OutputFile::Create(path));
  RETURN_IF_ERROR(file->Append(bytes));
  return file->Commit(OutputFile::Durability::kSynced);
}

std::string HearFifo(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string bytes = ReadOpenFile(fd, path).value_or("unreadable");
  close(fd);
  return bytes;
}

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/output_file_test_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    ASSERT_TRUE(ArmFailpoints("").ok());
    ASSERT_TRUE(RemoveTree(folder_).ok());
  }
  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  size_t Entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  std::string folder_;
};

TEST_F(OutputFileTest, AppearsWhenItIsCommitted) {
  auto file = OutputFile::Create(At("a"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("bytes").ok());
  EXPECT_FALSE(Exists(At("a")));
  ASSERT_EQ((*file)->Commit(OutputFile::Durability::kSynced), absl::OkStatus());
  EXPECT_EQ(*ReadFile(At("a")), "bytes");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(OutputFileTest, LeavesNoTraceWhereItIsNotCommitted) {
  ASSERT_TRUE(WriteOutput(At("a"), "old").ok());
  { ASSERT_TRUE((*OutputFile::Create(At("a")))->Append("half").ok()); }
  for (const char* point : {"file.write=enospc", "file.fsync=error", "file.rename=error"}) {
    ASSERT_TRUE(ArmFailpoints(point).ok());
    EXPECT_FALSE(WriteOutput(At("a"), "new").ok()) << point;
    ASSERT_TRUE(ArmFailpoints("").ok());
  }
  EXPECT_EQ(*ReadFile(At("a")), "old");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(OutputFileTest, ASymlinkStaysOne) {
  ASSERT_TRUE(MakeFolders(At("deep")).ok());
  fs::create_symlink("deep/target", At("link"));
  fs::create_symlink(At("link"), At("second"));
  for (const char* bytes : {"the target is made", "the target is replaced"}) {
    ASSERT_EQ(WriteOutput(At("second"), bytes), absl::OkStatus());
    EXPECT_TRUE(fs::is_symlink(At("second")) && fs::is_symlink(At("link")));
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(At("deep/target"))));
    EXPECT_EQ(*ReadFile(At("deep/target")), bytes);
  }
  fs::create_symlink("circle", At("circle"));
  EXPECT_FALSE(WriteOutput(At("circle"), "x").ok());
}

TEST_F(OutputFileTest, AFifoIsWrittenThrough) {
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = HearFifo(At("fifo")); });
  const absl::Status status = WriteOutput(At("fifo"), "through");
  reader.join();
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(At("fifo")));
}

// A node of our own that behaves as /dev/full does (1, 7), in our own folder.
TEST_F(OutputFileTest, ADeviceIsWrittenThroughAndItsErrorReported) {
  if (mknod(At("full").c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) GTEST_SKIP() << "may not make device nodes";
  const int fd = open(At("full").c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) GTEST_SKIP() << "may not open device nodes";
  close(fd);
  const absl::Status status = WriteOutput(At("full"), "bytes");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(status.message().find(At("full")), absl::string_view::npos) << status;
  EXPECT_TRUE(fs::is_character_file(At("full")));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(OutputFileTest, AFolderIsRefused) { EXPECT_FALSE(OutputFile::Create(folder_).ok()); }

}  // namespace
}  // namespace regatta::base
