#include "data/file_list.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "data/split.h"
#include "data/text_writer.h"

namespace regatta::data {
namespace {

using Files = std::vector<std::string>;

class FileListTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/file_list.XXXXXX";
    folder_ = mkdtemp(name.data());
    for (const char* file : {"b.txt", "a.txt", ".hidden", "c.gz"}) std::ofstream(folder_ + "/" + file) << "x\n";
    std::filesystem::create_directory(folder_ + "/sub");
  }
  void TearDown() override { EXPECT_TRUE(base::RemoveTree(folder_).ok()); }
  std::string folder_;
};

TEST_F(FileListTest, ExpandsFilesFoldersAndGlobs) {
  const std::string at = folder_ + "/";
  EXPECT_EQ(ExpandFiles(folder_).value(), Files({at + "a.txt", at + "b.txt", at + "c.gz"}));
  EXPECT_EQ(ExpandFiles(at + "*.txt").value(), Files({at + "a.txt", at + "b.txt"}));
  EXPECT_EQ(ExpandFiles(at + "b.txt").value(), Files({at + "b.txt"}));
  EXPECT_EQ(ExpandFiles(at + "*").value(), Files({at + "a.txt", at + "b.txt", at + "c.gz"}));
  EXPECT_NE(std::string(ExpandFiles(at + "*.csv").status().message()).find("'" + at + "*.csv'"), std::string::npos);
  EXPECT_EQ(ExpandFiles(at + "sub").status().message(), "folder " + at + "sub holds no files");
  EXPECT_FALSE(ExpandFiles("").ok());
}

TEST_F(FileListTest, WhatIsNoRegularFileIsRefused) {
  const std::string fifo = folder_ + "/d.fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& pattern : {fifo, folder_, folder_ + "/*"}) {
    const auto files = ExpandFiles(pattern);
    EXPECT_EQ(files.status().code(), absl::StatusCode::kInvalidArgument) << pattern;
    EXPECT_NE(files.status().message().find(fifo + " is a FIFO, not a regular file"), absl::string_view::npos)
        << files.status();
  }
  EXPECT_FALSE(CheckRegular(folder_).ok());
  std::filesystem::create_symlink(folder_ + "/a.txt", folder_ + "/link.txt");
  EXPECT_TRUE(CheckRegular(folder_ + "/link.txt").ok());
}

TEST_F(FileListTest, SplitsFilesAmongWorkers) {
  const Files files = {"t-00000", "t-00001", "t-00002", "t-00003", "t-00004.gz"};
  EXPECT_EQ(SplitFiles(files, 0, 2, FileSplit::kContiguous).value(), Files({"t-00000", "t-00001", "t-00002"}));
  EXPECT_EQ(SplitFiles(files, 1, 2, FileSplit::kContiguous).value(), Files({"t-00003", "t-00004.gz"}));
  EXPECT_EQ(SplitFiles(files, 1, 3, FileSplit::kMod).value(), Files({"t-00001", "t-00004.gz"}));
  EXPECT_EQ(SplitFiles(files, 6, 7, FileSplit::kContiguous).value(), Files({}));
  EXPECT_FALSE(SplitFiles({"part.txt"}, 0, 2, FileSplit::kMod).ok());
  EXPECT_FALSE(SplitFiles(files, 2, 2, FileSplit::kMod).ok());
}

TEST_F(FileListTest, SplitFileWritesEveryLineOnce) {
  const std::string path = folder_ + "/a.txt";
  std::ofstream(path) << "0\n1\n2\n3\n4\n5\n6";
  auto piece = [&](int i) { return base::ReadFile(path + "-0000" + std::to_string(i)).value(); };
  ASSERT_EQ(SplitFile(path, 3, LineSplit::kContiguous).value().lines, 7u);
  EXPECT_EQ(piece(0), "0\n1\n2\n");
  EXPECT_EQ(piece(1), "3\n4\n");
  EXPECT_EQ(piece(2), "5\n6\n");
  ASSERT_TRUE(SplitFile(path, 3, LineSplit::kRoundRobin).ok());
  EXPECT_EQ(piece(0), "0\n3\n6\n");
  EXPECT_EQ(piece(1), "1\n4\n");
  EXPECT_EQ(base::ReadFile(path).value(), "0\n1\n2\n3\n4\n5\n6") << "the original is kept";
  const SplitResult many = SplitFile(path, 9, LineSplit::kContiguous).value();
  EXPECT_EQ(many.pieces.size(), 9u);
  EXPECT_EQ(piece(6), "6\n");
  EXPECT_EQ(piece(8), "");
  EXPECT_FALSE(SplitFile(folder_ + "/missing", 2, LineSplit::kContiguous).ok());
}

TEST_F(FileListTest, PiecesOfACompressedFileAreCompressed) {
  const std::string path = folder_ + "/x.txt.zst";
  auto writer = TextWriter::Create(path, Compression::kZstd).value();
  ASSERT_TRUE(writer->Write("a\nb\n").ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(SplitFile(path, 2, LineSplit::kContiguous).value().pieces,
            Files({folder_ + "/x.txt-00000.zst", folder_ + "/x.txt-00001.zst"}));
  char text[16];
  EXPECT_EQ(OpenFile(folder_ + "/x.txt-00001.zst").value()->Read(text, sizeof text).value(), 2u);
  EXPECT_EQ(std::string(text, 2), "b\n");
}

}  // namespace
}  // namespace regatta::data
