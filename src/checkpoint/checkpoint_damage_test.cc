// Whatever happens to the files of a save is found, by verify and by loading.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "base/testing/test_folder.h"
#include "checkpoint/block.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/test_model.h"
#include "gtest/gtest.h"

namespace regatta::checkpoint {
namespace {

class CheckpointDamage : public testing::Test {
 protected:
  // Few rows, because every damage is looked for in the whole save; every kind of extent, one of them of two blocks.
  static constexpr int kRows = 40;

  void SetUp() override {
    model_.FillRandom(kRows, 1);
    ASSERT_TRUE(WriteCheckpoint(folder_ / "0", model_.view(), Run()).ok());
    bytes_ = base::ReadFile(data()).value();
    for (size_t at = kDataHeaderBytes; at < bytes_.size();) {
      Block block{at, {}};
      std::memcpy(&block.header, bytes_.data() + at, sizeof block.header);
      blocks_.push_back(block);
      at = block.end();
    }
    ASSERT_EQ(blocks_.back().end(), bytes_.size());
  }
  static RunState Run() {
    RunState run;
    run.blobs = {{"auc", std::string(kBlockBytes + 100, 'a')}};
    return run;
  }
  std::string data() const { return folder_ / "0/data-000"; }

  // The first error of opening, verifying and loading; each must find the damage.
  void ExpectFound(const std::string& what) {
    const auto reader = CheckpointReader::Open(folder_ / "0");
    if (!reader.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(reader.status())) << what << ": " << reader.status();
      EXPECT_TRUE(absl::StrContains(reader.status().message(), folder_ / "0")) << reader.status();
      return;
    }
    const std::vector<absl::Status> damage = reader->Verify();
    ASSERT_FALSE(damage.empty()) << what;
    EXPECT_TRUE(absl::StrContains(damage[0].message(), data() + ": byte ")) << damage[0];
    absl::Status status = reader->LoadInto(loaded_.tables(), LoadKind::kTraining);
    if (status.ok()) status = reader->ReadRunState().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << what << ": " << status;
  }

  struct Block {
    size_t begin;
    BlockHeader header;
    size_t payload() const { return begin + sizeof header; }
    size_t end() const { return payload() + header.payload_bytes; }
  };

  base::TestFolder folder_;
  TestModel model_, loaded_;
  std::string bytes_;
  std::vector<Block> blocks_;  // in order of their begins
};

TEST_F(CheckpointDamage, EveryFlippedBitIsFound) {
  // Every byte of the headers, and of each payload some: the first, the last and a few between.
  std::vector<size_t> places;
  for (size_t at = 0; at < kDataHeaderBytes; ++at) places.push_back(at);
  for (const Block& block : blocks_) {
    for (size_t at = block.begin; at < block.payload(); ++at) places.push_back(at);
    const size_t step = std::max<size_t>(37, block.header.payload_bytes / 8);
    for (size_t at = block.payload(); at < block.end(); at += step) places.push_back(at);
    places.push_back(block.end() - 1);
  }
  const int fd = open(data().c_str(), O_WRONLY);
  for (const size_t at : places) {
    const char damaged = bytes_[at] ^ static_cast<char>(1 << (at % 8));
    ASSERT_EQ(pwrite(fd, &damaged, 1, static_cast<off_t>(at)), 1);
    ExpectFound(absl::StrCat("byte ", at));
    ASSERT_EQ(pwrite(fd, &bytes_[at], 1, static_cast<off_t>(at)), 1);
  }
  close(fd);
  EXPECT_TRUE(CheckpointReader::Open(folder_ / "0")->Verify().empty());
}

TEST_F(CheckpointDamage, EveryTruncationAndExtensionIsFound) {
  std::vector<size_t> sizes = {0, 1, kDataHeaderBytes, bytes_.size() - 1};
  for (size_t size = 997; size < bytes_.size(); size += 997) sizes.push_back(size);
  for (const Block& block : blocks_) sizes.push_back(block.begin);  // between two blocks nothing looks cut off
  for (const size_t size : sizes) {
    ASSERT_EQ(truncate(data().c_str(), static_cast<off_t>(size)), 0);
    ExpectFound(absl::StrCat("size ", size));
    ASSERT_TRUE(base::WriteFileAtomically(data(), bytes_).ok());
  }
  ASSERT_TRUE(base::WriteFileAtomically(data(), bytes_ + "x").ok());
  const auto status = CheckpointReader::Open(folder_ / "0").status();
  EXPECT_TRUE(absl::StrContains(status.message(), "too long")) << status;
}

TEST_F(CheckpointDamage, ZeroedPagesAreFound) {
  for (size_t page = 0; page < bytes_.size(); page += 4096) {
    std::string damaged = bytes_;
    std::fill_n(damaged.begin() + static_cast<ptrdiff_t>(page), std::min<size_t>(4096, bytes_.size() - page), '\0');
    ASSERT_TRUE(base::WriteFileAtomically(data(), damaged).ok());
    ExpectFound(absl::StrCat("page ", page));
  }
}

TEST_F(CheckpointDamage, AMissingFileIsNamed) {
  std::filesystem::remove(data());
  const auto status = CheckpointReader::Open(folder_ / "0").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_TRUE(absl::StrContains(status.message(), data() + " is missing")) << status;
}

// A file of another save has valid blocks; only the manifest knows that they are not its own.
TEST_F(CheckpointDamage, AFileOfAnotherSaveIsFound) {
  TestModel other;
  other.FillRandom(kRows, 1);
  other.FillDense(99);
  ASSERT_TRUE(WriteCheckpoint(folder_ / "1", other.view(), Run()).ok());
  std::filesystem::copy_file(folder_ / "1/data-000", data(), std::filesystem::copy_options::overwrite_existing);
  ExpectFound("another save's file");
}

TEST_F(CheckpointDamage, AFailedLoadLeavesNoHalfFilledTable) {
  std::string damaged = bytes_;
  damaged[damaged.size() - 20] ^= 1;
  ASSERT_TRUE(base::WriteFileAtomically(data(), damaged).ok());
  TestModel loaded;
  loaded.FillRandom(10, 2);
  const auto dense = loaded.DenseBits();
  EXPECT_FALSE(CheckpointReader::Open(folder_ / "0")->LoadInto(loaded.tables(), LoadKind::kTraining).ok());
  EXPECT_EQ(loaded.sparse[0]->rows(), 0u);
  EXPECT_EQ(loaded.DenseBits(), dense);
}

}  // namespace
}  // namespace regatta::checkpoint
