#include "table/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace regatta::table {
namespace {

std::vector<float> Values(const InitializerConfig& config, size_t n, std::vector<int64_t> shape = {},
                          uint64_t stream = 5) {
  const auto initializer = Initializer::Create(config, shape);
  EXPECT_TRUE(initializer.ok()) << initializer.status();
  std::vector<float> out(n, -99);
  initializer->Fill(stream, out);
  return out;
}

double Mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<float>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const float v : values) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(Initializer, ConstantAndZeros) {
  EXPECT_EQ(Values({"zeros", 3, 4}, 3), std::vector<float>(3, 0.0f));
  EXPECT_EQ(Values({"constant", 2.5, 0}, 3), std::vector<float>(3, 2.5f));
}

TEST(Initializer, UniformIsTheCounterStream) {
  const std::vector<float> values = Values({"uniform", -2, 6}, 1003);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], -2.0f + 8.0f * base::UniformFloat(base::RandomBits(5, i))) << i;
  }
  EXPECT_NEAR(Mean(values), 2, 0.3);
  EXPECT_NE(values, Values({"uniform", -2, 6}, 1003, {}, 6));
}

TEST(Initializer, AShorterFillIsAPrefix) {
  for (const char* name : {"uniform", "normal"}) {
    const std::vector<float> whole = Values({name, 0, 1}, 100);
    const std::vector<float> part = Values({name, 0, 1}, 7);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  }
}

TEST(Initializer, NormalHasItsMeanAndDeviation) {
  const std::vector<float> values = Values({"normal", 1, 0.5}, 20'000);
  EXPECT_NEAR(Mean(values), 1, 0.02);
  EXPECT_NEAR(Deviation(values), 0.5, 0.02);
}

TEST(Initializer, XavierTakesItsFanFromTheShape) {
  const std::vector<float> uniform = Values({"xavier_uniform", 0, 0}, 20'000, {100, 200});
  const double limit = std::sqrt(6.0 / 300);
  EXPECT_LE(*std::max_element(uniform.begin(), uniform.end()), limit);
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -limit);
  EXPECT_NEAR(Deviation(uniform), limit / std::sqrt(3), 0.003);
  EXPECT_NEAR(Deviation(Values({"xavier_normal", 0, 0}, 20'000, {100, 200})), std::sqrt(2.0 / 300), 0.003);
  EXPECT_NEAR(Deviation(Values({"xavier_normal", 0, 0}, 20'000, {50})), std::sqrt(2.0 / 100), 0.005);
}

TEST(Initializer, SettingsThatCannotBeAreRefused) {
  EXPECT_FALSE(Initializer::Create({"xavier_uniform", 0, 0}).ok());
  EXPECT_FALSE(Initializer::Create({"uniform", 1, 0}).ok());
  EXPECT_FALSE(Initializer::Create({"normal", 0, -1}).ok());
  EXPECT_FALSE(Initializer::Create({"uniform", NAN, 1}).ok());
  EXPECT_NE(Initializer::Create({"gaussian", 0, 1}).status().message().find("normal"), std::string::npos);
}

}  // namespace
}  // namespace regatta::table
