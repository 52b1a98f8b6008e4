// Data_dirs that earlier versions left behind: this one goes on with them, bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/testing/test_folder.h"
#include "server/testing/golden_job.h"
#include "server/testing/lasting_job.h"

namespace regatta::server {
namespace {

namespace fs = std::filesystem;

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  GoldenTest() { fs::copy(Source() + "/data_dir", folder_ / "data_dir", fs::copy_options::recursive); }
  static std::string Source() { return std::string(REGATTA_TEST_DATA) + "/" + GetParam(); }
  static std::string Expected(const std::string& name) { return base::ReadFile(Source() + "/" + name).value(); }
  std::string data_dir() const { return folder_ / "data_dir"; }
  static Rates RatesOf() { return absl::EndsWith(GetParam(), SuffixOf(Rates::kOwn)) ? Rates::kOwn : Rates::kNone; }
  LastingJob Open() const {
    const std::string name = fs::path(GetParam()).filename().native();
    const std::string mode(absl::StripSuffix(name, SuffixOf(RatesOf())));
    const ps::JobSpec job = GoldenRequest(base::ModeNamed(mode).value()).job();
    return OpenLastingJob(data_dir(), ParseJobSpec(job).value());
  }
  void ExpectGoesOn() const {
    const LastingJob opened = Open();
    ASSERT_TRUE(opened.job.ok()) << opened.job.status();
    EXPECT_EQ(GoldenText(**opened.job), Expected("at_kill.txt"));
    EXPECT_EQ(ContinueGolden(**opened.job, RatesOf()), 0);
    EXPECT_EQ(GoldenText(**opened.job), Expected("continued.txt"));
  }

  base::TestFolder folder_;
};

TEST_P(GoldenTest, GoesOnFromCheckpointAndLog) { ExpectGoesOn(); }

TEST_P(GoldenTest, GoesOnFromTheLogAlone) {
  for (const auto& term : fs::directory_iterator(data_dir())) fs::remove_all(term.path() / "checkpoint");
  ExpectGoesOn();
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenTest,
                         testing::Values("data_dir_v3/async", "data_dir_v3/sync", "data_dir_v3/geo",
                                         "data_dir_v4/async", "data_dir_v4/sync", "data_dir_v4/geo",
                                         "data_dir_v4/async_rates", "data_dir_v4/sync_rates"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace regatta::server
