// Sums of a pass as its steps come in: the metrics since its beginning, the costs since the last report.
// Thread-safety: belongs to one thread.
#pragma once

#include <chrono>

#include "base/status.h"
#include "metrics/binary_metrics.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::train {

class PassMeter {
 public:
  explicit PassMeter(uint64_t epoch) : epoch_(epoch) {}

  void Add(const PassObserver::Step& step);

  uint64_t batches() const { return batches_; }
  // Of the steps since the last TakeInterval, which starts the next interval.
  IntervalReport Interval() const;
  IntervalReport TakeInterval();
  EpochReport Epoch(const char* what) const;

  // The metrics of a pass survive a resume; speeds begin anew.
  std::string Serialize() const;
  absl::Status Restore(std::string_view bytes);
  // Adds what another worker's meter of the pass serialised.
  absl::Status Merge(std::string_view bytes);

 private:
  struct Costs {
    uint64_t batches = 0;
    uint64_t samples = 0;
    double loss = 0;
    double weight = 0;
    double read_seconds = 0;
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  };

  const uint64_t epoch_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  uint64_t batches_ = 0;
  uint64_t samples_here_ = 0;  // in this process, for the speed
  double loss_ = 0;
  double weight_ = 0;
  metrics::BinaryMetrics metrics_;
  Costs interval_;
};

}  // namespace regatta::train
