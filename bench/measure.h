// One row of a benchmark: a thing and its bound measured in one run, interleaved, as a ratio against a bar.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace regatta::bench {

inline double Seconds(const std::function<void()>& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

enum class Better { kHigher, kLower };

struct Row {
  std::string name;  // "sparse pull"
  std::string unit;  // "M rows/s"
  double thing = 0;
  double bound = 0;
  double ratio = 0;
  double bar = 0;
  Better better = Better::kHigher;

  bool reached() const { return better == Better::kHigher ? ratio >= bar : ratio <= bar; }
};

// scripts/bench reads these lines and makes the table. Returns whether the bar was reached.
inline bool Print(const Row& row) {
  std::printf("ROW\t%s\t%s\t%.6g\t%.6g\t%.4f\t%s\t%g\t%s\n", row.name.c_str(), row.unit.c_str(), row.thing, row.bound,
              row.ratio, row.better == Better::kHigher ? ">=" : "<=", row.bar, row.reached() ? "ok" : "BELOW");
  std::fflush(stdout);
  return row.reached();
}

// Rounds of (thing, bound), each returning a speed (higher is better); the ratio is the median of the rounds' ratios.
inline Row Compare(std::string name, std::string unit, double bar, int rounds, const std::function<double()>& thing,
                   const std::function<double()>& bound) {
  std::vector<double> things, bounds, ratios;
  for (int i = 0; i < rounds; ++i) {
    things.push_back(thing());
    bounds.push_back(bound());
    ratios.push_back(things.back() / bounds.back());
  }
  return Row{std::move(name), std::move(unit), Median(things), Median(bounds), Median(ratios), bar, Better::kHigher};
}

}  // namespace regatta::bench
