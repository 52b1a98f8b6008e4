// Whatever happens to the files of a save is found, by verify and by loading.
#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "table/checkpoint/checkpoint_reader.h"
#include "table/checkpoint/checkpoint_writer.h"
#include "table/checkpoint/test_folder.h"
#include "table/checkpoint/test_model.h"

namespace regatta::table {
namespace {

class CheckpointDamage : public testing::Test {
 protected:
  void SetUp() override {
    model_.FillRandom(300, 1);
    RunState run;
    run.blobs = {{"auc", std::string(5000, 'a')}};
    ASSERT_TRUE(WriteCheckpoint(folder_ / "0", model_.view(), run).ok());
    bytes_ = base::ReadFile(data()).value();
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

  TestFolder folder_;
  TestModel model_, loaded_;
  std::string bytes_;
};

TEST_F(CheckpointDamage, EveryFlippedBitIsFound) {
  const int fd = open(data().c_str(), O_WRONLY);
  for (size_t i = 0; i < bytes_.size(); i += 37) {
    const char damaged = bytes_[i] ^ static_cast<char>(1 << (i % 8));
    ASSERT_EQ(pwrite(fd, &damaged, 1, static_cast<off_t>(i)), 1);
    ExpectFound(absl::StrCat("byte ", i));
    ASSERT_EQ(pwrite(fd, &bytes_[i], 1, static_cast<off_t>(i)), 1);
  }
  close(fd);
  EXPECT_TRUE(CheckpointReader::Open(folder_ / "0")->Verify().empty());
}

TEST_F(CheckpointDamage, EveryTruncationAndExtensionIsFound) {
  for (size_t size = 0; size < bytes_.size(); size += 997) {
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
  other.FillRandom(300, 1);
  other.FillDense(99);
  RunState run;
  run.blobs = {{"auc", std::string(5000, 'a')}};
  ASSERT_TRUE(WriteCheckpoint(folder_ / "1", other.view(), run).ok());
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
}  // namespace regatta::table
