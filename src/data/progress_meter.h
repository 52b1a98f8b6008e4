// What a dataset and its readers count while they work; Progress is a reading of it.
// Thread-safety: concurrent.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "data/dataset.h"

namespace regatta::data {

struct ProgressMeter {
  using Clock = std::chrono::steady_clock;

  std::atomic<uint64_t> bytes_done{0}, bytes_total{0}, samples{0}, bad_lines{0};
  // Nanoseconds of all threads by stage, as in Progress.
  std::atomic<int64_t> read{0}, parse{0}, blocked{0}, merge{0}, wait{0};

  static void AddSince(Clock::time_point start, std::atomic<int64_t>& nanos) {
    nanos.fetch_add(std::chrono::nanoseconds(Clock::now() - start).count(), std::memory_order_relaxed);
  }

  Progress Read() const {
    const auto seconds = [](const std::atomic<int64_t>& nanos) { return static_cast<double>(nanos.load()) * 1e-9; };
    Progress progress;
    progress.bytes_done = bytes_done;
    progress.bytes_total = bytes_total;
    progress.samples = samples;
    progress.bad_lines = bad_lines;
    progress.read_seconds = seconds(read);
    progress.parse_seconds = seconds(parse);
    progress.blocked_seconds = seconds(blocked);
    progress.merge_seconds = seconds(merge);
    progress.wait_seconds = seconds(wait);
    return progress;
  }
};

}  // namespace regatta::data
