#include "train/plan_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "train/testing/embedded_job.h"

namespace regatta::train {
namespace {

using testing::Numbers;

bool NeverStop() { return false; }

TEST(PlanQueue, ManyThreadsGetEveryBatchOncePlanned) {
  Numbers data(200);
  PlanQueue queue(data, {{0, 1}, {1}}, 4, nullptr);
  queue.Start({});
  std::vector<std::set<uint64_t>> seen(4);
  std::vector<std::thread> threads;
  for (std::set<uint64_t>& mine : seen) {
    threads.emplace_back([&queue, &mine] {
      while (true) {
        auto planned = queue.Next(NeverStop);
        ASSERT_TRUE(planned.ok()) << planned.status();
        if (*planned == nullptr) return;
        const data::Batch& batch = *(*planned)->batch;
        mine.insert(batch.index);
        const std::set<base::Key> keys(batch.keys.begin(), batch.keys.end());
        const lookup::KeyPlan &all = (*planned)->plans[0], &second = (*planned)->plans[1];
        EXPECT_EQ(std::set<base::Key>(all.keys.begin(), all.keys.end()), keys);
        EXPECT_EQ(all.keys.size(), keys.size());
        EXPECT_EQ(second.keys.size(), 4u);
        for (const base::Key key : second.keys) EXPECT_GE(key, 1000u) << "an id of the other slot";
        queue.Recycle(*std::move(planned));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  size_t count = 0;
  for (const auto& mine : seen) {
    all.insert(mine.begin(), mine.end());
    count += mine.size();
  }
  EXPECT_EQ(all.size(), 200u);
  EXPECT_EQ(count, 200u);
  EXPECT_TRUE(queue.Stop().ok());
}

TEST(PlanQueue, StopEndsAPassWhoseDataNeverComes) {
  Numbers data(10);
  data.hang_at = 3;
  PlanQueue queue(data, {{0, 1}}, 2, nullptr);
  queue.Start({});
  for (int i = 0; i < 3; ++i) ASSERT_NE(*queue.Next(NeverStop), nullptr);
  EXPECT_EQ(queue.TryNext(), nullptr);
  EXPECT_TRUE(queue.Stop().ok());
}

TEST(PlanQueue, AnErrorOfTheDataReachesEveryThread) {
  class Broken : public Numbers {
   public:
    Broken() : Numbers(10) {}
    absl::StatusOr<std::unique_ptr<data::Batch>> Next() override { return absl::DataLossError("line 7"); }
  } data;
  PlanQueue queue(data, {{0, 1}}, 2, nullptr);
  queue.Start({});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&queue] { EXPECT_EQ(queue.Next(NeverStop).status().message(), "line 7"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(queue.Stop().message(), "line 7");
}

}  // namespace
}  // namespace regatta::train
