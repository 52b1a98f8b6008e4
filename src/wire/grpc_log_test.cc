#include "wire/grpc_log.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/ps.pb.h"

namespace regatta::wire {
namespace {

class Lines : public google::LogSink {
 public:
  Lines() { google::AddLogSink(this); }
  ~Lines() override { google::RemoveLogSink(this); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*, const char* message,
            size_t length) override {
    lines_.emplace_back(message, length);
  }
  std::vector<std::string> lines_;
};

TEST(GrpcLog, TextsThatAreNotUtf8AreOneLineOfOurLog) {
  LogThroughGlog();
  const Lines logged;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) {
    ps::GatherRequest request;
    EXPECT_FALSE(request.ParseFromString("\x12\x02\xff\xfe")) << "its name";
  }
  const std::string written = testing::internal::GetCapturedStderr();
  ASSERT_EQ(logged.lines().size(), 1u);
  EXPECT_THAT(logged.lines()[0], testing::AllOf(testing::HasSubstr("protobuf: "), testing::HasSubstr("UTF-8")));
  EXPECT_THAT(written, testing::Not(testing::HasSubstr("[libprotobuf")));
}

}  // namespace
}  // namespace regatta::wire
