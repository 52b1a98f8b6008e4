#include "data/source/line_source.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "data/text_writer.h"

namespace regatta::data {
namespace {

std::string TempPath(const std::string& name) { return testing::TempDir() + "/line_source_" + name; }

void WriteBytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Read {
  std::string text;  // "<9>" stands for a dropped line of 9 bytes
  absl::Status status;
  uint64_t disk_bytes = 0;
};

Read ReadAll(std::unique_ptr<ByteSource> bytes, size_t block_bytes, size_t max_line, ByteRange range = {}) {
  LineSource lines(block_bytes, max_line);
  lines.Open(std::move(bytes), range);
  Read read;
  LineBlock block;
  while (true) {
    auto more = lines.Next(&block);
    if (!more.ok()) read.status = more.status();
    if (!more.ok() || !*more) return read;
    EXPECT_TRUE(block.text.empty() || block.text.back() == '\n');
    read.text += block.text;
    if (block.dropped_line_bytes > 0) read.text += absl::StrCat("<", block.dropped_line_bytes, ">\n");
    read.disk_bytes += block.disk_bytes;
  }
}

std::string ManyLines() {
  std::string text;
  for (int i = 0; i < 500; ++i) text += std::string(static_cast<size_t>(i * 37 % 90), 'a' + i % 26) + "\n";
  return text;
}

TEST(LineSource, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const std::string mark = "\xEF\xBB\xBF", path = TempPath("mark");
  WriteBytes(path, mark + "a:1\n" + mark + "b:2\n");
  const std::string want = "a:1\n" + mark + "b:2\n";
  for (const size_t block : {1, 2, 5, 100}) EXPECT_EQ(ReadAll(OpenPlain(path).value(), block, 100).text, want);
  for (const uint64_t cut : {1, 2, 3, 4, 7, 9}) {
    const std::string first = ReadAll(OpenPlain(path).value(), 4, 100, {0, cut}).text;
    EXPECT_EQ(first + ReadAll(OpenPlain(path, cut - 1).value(), 4, 100, {cut, 14}).text, want) << cut;
  }
}

TEST(OpenFile, KnowsCompressedFilesByTheirFirstBytes) {
  for (const Compression compression : {Compression::kGzip, Compression::kZstd, Compression::kNone}) {
    const std::string path = TempPath("no_ending");
    auto writer = TextWriter::Create(path, compression).value();
    ASSERT_TRUE(writer->Write(ManyLines()).ok() && writer->Close().ok());
    EXPECT_EQ(RecogniseCompression(path).value(), compression);
    EXPECT_EQ(ReadAll(OpenFile(path).value(), 1000, 100).text, ManyLines());
  }
}

TEST(LineSource, GivesWholeLinesForAnyBlockSize) {
  const std::string path = TempPath("plain"), text = ManyLines() + "last without end";
  WriteBytes(path, text);
  for (size_t block : {1u, 7u, 64u, 4096u, 1u << 20}) {
    const Read read = ReadAll(OpenPlain(path).value(), block, 1 << 20);
    EXPECT_EQ(read.text, text + "\n") << block;
    EXPECT_EQ(read.disk_bytes, text.size());
  }
}

TEST(LineSource, PiecesGiveEveryLineOnce) {
  const std::string path = TempPath("pieces"), text = ManyLines() + "tail";
  WriteBytes(path, text);
  for (uint64_t piece : {1u, 2u, 50u, 91u, 1000u, 1u << 20}) {
    std::string joined;
    uint64_t disk_bytes = 0;
    for (uint64_t begin = 0; begin < text.size(); begin += piece) {
      const ByteRange range = {begin, std::min<uint64_t>(begin + piece, text.size())};
      const Read read = ReadAll(OpenPlain(path, begin == 0 ? 0 : begin - 1).value(), 64, 1 << 20, range);
      joined += read.text;
      disk_bytes += read.disk_bytes;
    }
    EXPECT_EQ(joined, text + "\n") << piece;
    EXPECT_NEAR(static_cast<double>(disk_bytes), static_cast<double>(text.size()), 1);
  }
}

TEST(LineSource, DropsLongLinesWhateverTheBlocksAndPieces) {
  const std::string path = TempPath("long");
  const std::string text = "ab\n" + std::string(100, 'x') + "\ncd\n" + std::string(10, 'y') + "\n" +
                           std::string(11, 'z') + "\nef\n" + std::string(5000, 'w');
  WriteBytes(path, text);
  const std::string want = "ab\n<100>\ncd\n" + std::string(10, 'y') + "\n<11>\nef\n<5000>\n";
  for (size_t block : {1u, 5u, 64u, 100'000u}) {
    EXPECT_EQ(ReadAll(OpenPlain(path).value(), block, 10).text, want) << block;
    for (uint64_t piece : {3u, 40u, 200u}) {
      std::string joined;
      for (uint64_t begin = 0; begin < text.size(); begin += piece)
        joined += ReadAll(OpenPlain(path, begin == 0 ? 0 : begin - 1).value(), block, 10,
                          {begin, std::min<uint64_t>(begin + piece, text.size())})
                      .text;
      EXPECT_EQ(joined, want) << block << " " << piece;
    }
  }
}

TEST(ByteSource, ReadsCompressedFilesMembersJoined) {
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    const std::string ending = compression == Compression::kGzip ? ".gz" : ".zst";
    std::string bytes;
    for (const std::string& part : {ManyLines(), std::string("second member\n"), std::string()}) {
      const std::string path = TempPath("member" + ending);
      auto writer = TextWriter::Create(path, compression).value();
      ASSERT_TRUE(writer->Write(part).ok());
      ASSERT_TRUE(writer->Close().ok());
      bytes += ReadBytes(path);
    }
    const std::string joined = TempPath("joined" + ending);
    WriteBytes(joined, bytes);
    const Read read = ReadAll(OpenFile(joined).value(), 1000, 1 << 20);
    EXPECT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.text, ManyLines() + "second member\n");
    EXPECT_LE(read.disk_bytes, bytes.size());
  }
}

TEST(ByteSource, BrokenCompressedFilesAreErrorsWithNameAndOffset) {
  for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
    const std::string ending = compression == Compression::kGzip ? ".gz" : ".zst";
    const std::string path = TempPath("broken" + ending);
    auto writer = TextWriter::Create(path, compression).value();
    ASSERT_TRUE(writer->Write(ManyLines()).ok());
    ASSERT_TRUE(writer->Close().ok());
    const std::string whole = ReadBytes(path);
    const std::string kind = ending.substr(1) == "gz" ? "gzip" : "zstd";
    std::string flipped = whole;
    flipped[whole.size() / 2] ^= 0x55;
    for (const std::string& broken : {whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 1), flipped,
                                      std::string("no such thing"), whole + "trailing bytes"}) {
      WriteBytes(path, broken);
      const absl::Status status = ReadAll(OpenFile(path).value(), 1000, 1 << 20).status;
      EXPECT_NE(std::string(status.message()).find(path + ": unreadable " + kind + " at byte "), std::string::npos)
          << status;
    }
  }
}

TEST(ByteSource, MissingFilesAndFoldersAreNamed) {
  EXPECT_EQ(OpenFile("/nowhere/file.txt").status().message(),
            "cannot open /nowhere/file.txt: No such file or directory");
  EXPECT_FALSE(OpenFile(testing::TempDir()).ok());
}

}  // namespace
}  // namespace regatta::data
