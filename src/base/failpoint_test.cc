#include "base/failpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::base {
namespace {

class FailpointTest : public testing::Test {
 protected:
  void TearDown() override { ASSERT_TRUE(ArmFailpoints("").ok()); }
};

TEST_F(FailpointTest, NothingFailsUnlessArmed) {
  EXPECT_TRUE(Failpoint("file.write").ok());
  ASSERT_TRUE(ArmFailpoints("save.rename=error").ok());
  EXPECT_TRUE(Failpoint("file.write").ok());
  EXPECT_FALSE(Failpoint("save.rename").ok());
  ASSERT_TRUE(ArmFailpoints("").ok());
  EXPECT_TRUE(Failpoint("save.rename").ok());
}

TEST_F(FailpointTest, ACountFiresAtThatHitOnly) {
  ASSERT_TRUE(ArmFailpoints("a=error@3,b=enospc").ok());
  EXPECT_TRUE(Failpoint("a").ok());
  EXPECT_TRUE(Failpoint("a").ok());
  EXPECT_FALSE(Failpoint("a").ok());
  EXPECT_TRUE(Failpoint("a").ok());
  EXPECT_EQ(Failpoint("b").code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FailpointTest, SlowTakesItsTimeAndFailsNothing) {
  ASSERT_TRUE(ArmFailpoints("a=slow").ok());
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Failpoint("a").ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(15));
}

TEST_F(FailpointTest, BadSpecificationsNameThePart) {
  for (const char* bad : {"a", "a=explode", "a=error@x", "a=error@0"}) {
    const absl::Status status = ArmFailpoints(bad);
    EXPECT_FALSE(status.ok()) << bad;
    EXPECT_NE(std::string(status.message()).find(bad), std::string::npos);
  }
}

TEST(Status, ContextIsPutInFront) {
  const absl::Status status = Annotate(absl::NotFoundError("no row"), "table embedding");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()), "table embedding: no row");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

TEST(Mutex, WaitsEndByNoticeOrByTime) {
  Mutex mu;
  CondVar ready;
  bool done = false;
  std::thread other([&] {
    MutexLock lock(mu);
    done = true;
    ready.NotifyAll();
  });
  {
    MutexLock lock(mu);
    while (!done) ready.Wait(mu);
    while (ready.WaitFor(mu, std::chrono::milliseconds(1))) {
    }
  }
  other.join();
}

}  // namespace
}  // namespace regatta::base
