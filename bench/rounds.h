// The C++ end of bench/side.py: a round of work for every line on stdin. Prints READY after a first round, which warms
// up, then for each line RATE<TAB>samples/s<TAB>CPU seconds a million samples.
#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <iostream>
#include <string>

#include "bench/measure.h"

namespace regatta::bench {

// `round` does its work and gives the samples of it; `others` is the processor time of other processes that take part.
inline void ServeRounds(
    const std::function<uint64_t()>& round, const std::function<double()>& others = [] { return 0.0; }) {
  const auto cpu = [&] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC + others(); };
  round();
  std::puts("READY");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const double start = cpu();
    uint64_t samples = 0;
    const double seconds = Seconds([&] { samples = round(); });
    const auto count = static_cast<double>(samples);
    std::printf("RATE\t%.1f\t%.2f\n", count / seconds, (cpu() - start) / count * 1e6);
    std::fflush(stdout);
  }
}

}  // namespace regatta::bench
