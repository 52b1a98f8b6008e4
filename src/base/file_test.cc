#include "base/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"

namespace regatta::base {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/file_test_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    ASSERT_TRUE(ArmFailpoints("").ok());
    ASSERT_TRUE(RemoveTree(folder_).ok());
  }
  std::string At(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(FileTest, AtomicWriteReplacesTheWhole) {
  ASSERT_TRUE(WriteFileAtomically(At("a"), "old").ok());
  ASSERT_TRUE(WriteFileAtomically(At("a"), std::string("new\0bytes", 9)).ok());
  EXPECT_EQ(*ReadFile(At("a")), std::string("new\0bytes", 9));
}

TEST_F(FileTest, AFailedWriteLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(At("a"), "old").ok());
  for (const char* point : {"file.write=error", "file.write=enospc", "file.fsync=error", "file.rename=error"}) {
    ASSERT_TRUE(ArmFailpoints(point).ok());
    EXPECT_FALSE(WriteFileAtomically(At("a"), "new").ok()) << point;
    ASSERT_TRUE(ArmFailpoints("").ok());
    EXPECT_EQ(*ReadFile(At("a")), "old") << point;
  }
}

TEST_F(FileTest, AKillBetweenWriteAndRenameLeavesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(At("a"), "old").ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)ArmFailpoints("file.rename=crash");
    (void)WriteFileAtomically(At("a"), "new");
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(*ReadFile(At("a")), "old");
}

TEST_F(FileTest, ReadsUpToALimit) {
  ASSERT_TRUE(WriteFileAtomically(At("a"), std::string(200000, 'x')).ok());
  EXPECT_EQ(ReadFile(At("a"), 200000)->size(), 200000u);
  EXPECT_EQ(ReadFile(At("a"), 199999).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReadFile(At("missing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadFile(folder_).ok());
}

TEST_F(FileTest, AppendsAcrossItsBuffer) {
  auto file = AppendFile::Create(At("a"));
  ASSERT_TRUE(file.ok());
  std::string wanted;
  for (int i = 0; i < 300; ++i) {
    const std::string piece(static_cast<size_t>(i) * 37 % 20000, static_cast<char>('a' + i % 26));
    wanted += piece;
    ASSERT_TRUE((*file)->Append(piece).ok());
  }
  const std::string large(3 << 20, 'L');
  ASSERT_TRUE((*file)->Append(large).ok());
  wanted += large;
  EXPECT_EQ((*file)->size(), wanted.size());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_TRUE(*ReadFile(At("a")) == wanted);
}

TEST_F(FileTest, ExchangeSwapsTwoFolders) {
  ASSERT_TRUE(MakeFolders(At("x/deep")).ok());
  ASSERT_TRUE(MakeFolders(At("y")).ok());
  ASSERT_TRUE(WriteFileAtomically(At("y/mark"), "y").ok());
  ASSERT_TRUE(ExchangeDurably(At("x"), At("y")).ok());
  EXPECT_TRUE(Exists(At("x/mark")));
  EXPECT_TRUE(Exists(At("y/deep")));
  EXPECT_FALSE(ExchangeDurably(At("x"), At("none")).ok());
}

TEST_F(FileTest, FreeSpaceIsKnownForPathsThatDoNotExistYet) { EXPECT_GT(*FreeBytes(At("not/yet/there")), 0u); }

TEST_F(FileTest, RemovingWhatIsNotThereIsFine) { EXPECT_TRUE(RemoveTree(At("nothing")).ok()); }

}  // namespace
}  // namespace regatta::base
