#include "metrics/exposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <sstream>

namespace regatta::metrics {
namespace {

// The value of the line that begins with `sample` and a blank; NaN where there is none.
double ValueOf(const std::string& text, const std::string& sample) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(sample + " ", 0) == 0) return std::stod(line.substr(sample.size() + 1));
  return std::nan("");
}

TEST(Exposition, EveryFamilyHasHelpTypeAndItsSamplesTogether) {
  Exposition out;
  out.Gauge("regatta_rows", "Rows.", 3, {{"table", "a"}});
  out.Counter("regatta_bytes_total", "Bytes.", 12'345'678'901);
  out.Gauge("regatta_rows", "Rows.", 0.25, {{"table", "b"}, {"lane", "0"}});
  EXPECT_EQ(out.Text(),
            "# HELP regatta_rows Rows.\n# TYPE regatta_rows gauge\nregatta_rows{table=\"a\"} 3\n"
            "regatta_rows{table=\"b\",lane=\"0\"} 0.25\n"
            "# HELP regatta_bytes_total Bytes.\n# TYPE regatta_bytes_total counter\n"
            "regatta_bytes_total 12345678901\n");
}

TEST(Exposition, LabelsAndHelpAreEscaped) {
  Exposition out;
  out.Gauge("regatta_x", "a\\b\nc \"d\"", 1, {{"where", "say \"hi\"\n\\"}});
  EXPECT_EQ(
      out.Text(),
      "# HELP regatta_x a\\\\b\\nc \"d\"\n# TYPE regatta_x gauge\nregatta_x{where=\"say \\\"hi\\\"\\n\\\\\"} 1\n");
}

TEST(Exposition, NumbersThatAreNone) {
  Exposition out;
  out.Gauge("regatta_a", "A.", std::nan(""));
  out.Gauge("regatta_b", "B.", HUGE_VAL);
  out.Gauge("regatta_c", "C.", -HUGE_VAL);
  EXPECT_NE(out.Text().find("regatta_a NaN\n"), std::string::npos);
  EXPECT_NE(out.Text().find("regatta_b +Inf\n"), std::string::npos);
  EXPECT_NE(out.Text().find("regatta_c -Inf\n"), std::string::npos);
}

TEST(Exposition, BucketsAreCumulative) {
  Histogram nanoseconds;
  nanoseconds.Record(1'000);                                // 1 µs
  for (int i = 0; i < 3; ++i) nanoseconds.Record(150'000);  // 150 µs
  nanoseconds.Record(40'000'000);                           // 40 ms
  nanoseconds.Record(200'000'000'000);                      // 200 s
  Exposition out;
  out.Seconds("regatta_s", "S.", nanoseconds, {{"verb", "pull"}});
  const std::string text = out.Text();
  EXPECT_NE(text.find("# TYPE regatta_s histogram\n"), std::string::npos);
  EXPECT_EQ(ValueOf(text, "regatta_s_bucket{verb=\"pull\",le=\"1e-05\"}"), 1);
  EXPECT_EQ(ValueOf(text, "regatta_s_bucket{verb=\"pull\",le=\"0.0001\"}"), 1);
  EXPECT_EQ(ValueOf(text, "regatta_s_bucket{verb=\"pull\",le=\"0.0002\"}"), 4);
  EXPECT_EQ(ValueOf(text, "regatta_s_bucket{verb=\"pull\",le=\"0.05\"}"), 5);
  EXPECT_EQ(ValueOf(text, "regatta_s_bucket{verb=\"pull\",le=\"100\"}"), 5);
  EXPECT_EQ(ValueOf(text, "regatta_s_bucket{verb=\"pull\",le=\"+Inf\"}"), 6);
  EXPECT_EQ(ValueOf(text, "regatta_s_count{verb=\"pull\"}"), 6);
  EXPECT_NEAR(ValueOf(text, "regatta_s_sum{verb=\"pull\"}"), 200.040451, 1e-6);
  double last = 0;
  const std::regex bucket("regatta_s_bucket\\{[^}]*\\} ([0-9.]+)");
  int buckets = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), bucket), end; it != end; ++it, ++buckets) {
    EXPECT_GE(std::stod((*it)[1]), last);
    last = std::stod((*it)[1]);
  }
  EXPECT_EQ(buckets, 4 * 7 + 2);
}

TEST(Exposition, CountsAreExactWhereTheyAreSmall) {
  Histogram values;
  for (const uint64_t v : {0, 0, 1, 3, 8, 9}) values.Record(v);
  Exposition out;
  out.Counts("regatta_n", "N.", values);
  const std::string text = out.Text();
  EXPECT_EQ(ValueOf(text, "regatta_n_bucket{le=\"0\"}"), 2);
  EXPECT_EQ(ValueOf(text, "regatta_n_bucket{le=\"1\"}"), 3);
  EXPECT_EQ(ValueOf(text, "regatta_n_bucket{le=\"2\"}"), 3);
  EXPECT_EQ(ValueOf(text, "regatta_n_bucket{le=\"4\"}"), 4);
  EXPECT_EQ(ValueOf(text, "regatta_n_bucket{le=\"8\"}"), 5);
  EXPECT_EQ(ValueOf(text, "regatta_n_bucket{le=\"+Inf\"}"), 6);
  EXPECT_EQ(ValueOf(text, "regatta_n_sum"), 21);
}

}  // namespace
}  // namespace regatta::metrics
