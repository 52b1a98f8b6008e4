#include "server/hosted_snapshot.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/grouped_keys.h"
#include "server/hosted_job.h"
#include "server/testing/small_job.h"

namespace regatta::server {
namespace {

Identity Reader(uint64_t incarnation = 7) { return {0, incarnation, "here"}; }

class HostedSnapshotTest : public testing::Test {
 protected:
  HostedSnapshotTest() {
    job_ = SmallJob();
    for (base::Key key = 0; key < 300; ++key) Add(key, 1);
  }

  void Add(base::Key key, float value) {
    const base::GroupedKeys grouped({key});
    const std::vector<float> row(static_cast<size_t>(job_->sparse(0).pull_width()), value);
    base::TableGrads grads;
    grads.keys = grouped.view();
    grads.grads = {row.data(), job_->sparse(0).pull_width(), job_->sparse(0).pull_width()};
    const WriteGatePass pass(job_->gate());
    EXPECT_TRUE(job_->sparse(0).Add(grads, table::NanPolicy::kSkip).ok());
  }

  absl::StatusOr<std::map<base::Key, float>> Read(uint64_t number, uint64_t page = 1000) {
    std::map<base::Key, float> values;
    ASSIGN_OR_RETURN(const auto counts, job_->snapshot().CountRows(number, {0, base::kVirtualShards}));
    for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard) {
      uint64_t rows = 0;
      while (rows < counts[shard]) {
        ASSIGN_OR_RETURN(const auto read, job_->snapshot().ReadRows(number, 0, shard, rows, page));
        const size_t width = static_cast<size_t>(job_->sparse(0).row_width());
        for (size_t i = 0; i < read.keys.size(); ++i) values[read.keys[i]] = read.rows[i * width];
        rows += read.keys.size();
        if (read.keys.empty()) return absl::DataLossError("rows are missing");
      }
    }
    return values;
  }

  std::unique_ptr<HostedJob> job_;
};

TEST_F(HostedSnapshotTest, ShowsTheTablesOfItsMomentWhileTheyChange) {
  const uint64_t before = job_->rows();
  ASSERT_TRUE(job_->snapshot().Begin(1, Reader()).ok());
  const auto fresh = Read(1, 1);
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_EQ(fresh->size(), before);
  job_->snapshot().End(1);
  ASSERT_TRUE(job_->snapshot().Begin(2, Reader()).ok());
  std::thread pusher([&] {
    for (base::Key key = 0; key < 600; ++key) Add(key, 5);
  });
  const auto read = Read(2);
  pusher.join();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *fresh) << "neither changes nor new rows show";
  EXPECT_EQ(job_->rows(), 600u);
}

TEST_F(HostedSnapshotTest, TheLastShardsCanBeReadAgainAndOthersNot) {
  ASSERT_TRUE(job_->snapshot().Begin(1, Reader()).ok());
  const auto counts = job_->snapshot().CountRows(1, {0, base::kVirtualShards}).value();
  std::vector<uint32_t> shards;
  for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
    if (counts[shard] > 0) shards.push_back(shard);
  ASSERT_GT(shards.size(), 100u);
  for (const uint32_t shard : shards) {
    const auto once = job_->snapshot().ReadRows(1, 0, shard, 0, 1000),
               twice = job_->snapshot().ReadRows(1, 0, shard, 0, 1000);
    ASSERT_TRUE(once.ok() && twice.ok()) << twice.status();
    EXPECT_EQ(once->keys, twice->keys);
    EXPECT_EQ(once->rows, twice->rows);
  }
  EXPECT_EQ(job_->snapshot().ReadRows(1, 0, shards[0], 0, 1000).status().code(), absl::StatusCode::kAborted);
}

TEST_F(HostedSnapshotTest, IsOneAtATimeAndTakesTurnsWithTheServersOwn) {
  EXPECT_EQ(job_->snapshot().Begin(0, Reader()).code(), absl::StatusCode::kInvalidArgument);
  {
    const SnapshotLock::Held own(job_->snapshot_lock());
    EXPECT_EQ(job_->snapshot().Begin(1, Reader()).code(), absl::StatusCode::kAborted);
  }
  ASSERT_TRUE(job_->snapshot().Begin(1, Reader()).ok());
  EXPECT_TRUE(job_->snapshot().Begin(1, Reader()).ok()) << "a call that is repeated";
  EXPECT_EQ(job_->snapshot().Begin(2, Reader()).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(job_->snapshot().Begin(1, Reader(8)).code(), absl::StatusCode::kAborted) << "of another life of the reader";
  EXPECT_FALSE(SnapshotLock::Held(job_->snapshot_lock()).ok());
  job_->snapshot().End(2);
  EXPECT_TRUE(Read(1).ok()) << "the end of another is not its end";
  job_->snapshot().End(1);
  EXPECT_EQ(Read(1).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(SnapshotLock::Held(job_->snapshot_lock()).ok());
}

TEST_F(HostedSnapshotTest, IsGivenUpWhenItsReaderHasLeft) {
  ASSERT_TRUE(job_->snapshot().Begin(1, Reader()).ok());
  job_->snapshot().ReleaseIfAbandoned(/*reader_is_here=*/true);
  EXPECT_TRUE(job_->snapshot().begun());
  job_->snapshot().ReleaseIfAbandoned(/*reader_is_here=*/false);
  EXPECT_FALSE(job_->snapshot().begun());
  EXPECT_EQ(Read(1).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(job_->snapshot().Begin(2, Reader()).ok());
}

}  // namespace
}  // namespace regatta::server
