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
  ASSERT_TRUE(ArmFailpoints("file.write=error@3,file.fsync=enospc").ok());
  EXPECT_TRUE(Failpoint("file.write").ok());
  EXPECT_TRUE(Failpoint("file.write").ok());
  EXPECT_FALSE(Failpoint("file.write").ok());
  EXPECT_TRUE(Failpoint("file.write").ok());
  EXPECT_EQ(Failpoint("file.fsync").code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FailpointTest, SlowTakesItsTimeAndFailsNothing) {
  ASSERT_TRUE(ArmFailpoints("file.write=slow").ok());
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Failpoint("file.write").ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(15));
}

TEST_F(FailpointTest, BadSpecificationsNameThePart) {
  for (const char* bad : {"file.write", "file.write=explode", "file.write=error@x", "file.write=error@0", "=error"}) {
    const absl::Status status = ArmFailpoints(bad);
    EXPECT_FALSE(status.ok()) << bad;
    EXPECT_NE(std::string(status.message()).find(bad), std::string::npos);
  }
}

TEST_F(FailpointTest, AMisspeltPlaceIsRefusedWithTheOneThatWasMeant) {
  const absl::Status near = ArmFailpoints("file.write=error,log.wirte=crash@2");
  EXPECT_NE(std::string(near.message()).find("log.write"), std::string::npos) << near;
  EXPECT_TRUE(Failpoint("file.write").ok());  // nothing of it is armed
  const absl::Status far = ArmFailpoints("somewhere=crash");
  EXPECT_NE(std::string(far.message()).find("step.complete"), std::string::npos) << far;
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
