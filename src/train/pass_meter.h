// Sums of a pass as its steps come in: the metrics of each output since its beginning, the costs since the last report.
// Thread-safety: belongs to one thread.
#pragma once

#include <chrono>
#include <vector>

#include "base/status.h"
#include "train/net_spec.h"
#include "train/output_meter.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::train {

class PassMeter {
 public:
  // Of the outputs that the net declares. The spec has passed CheckNetSpec.
  PassMeter(uint64_t epoch, const NetSpec& spec);
  // For the same pass and outputs as `like`, with nothing counted.
  static PassMeter Empty(const PassMeter& like);

  void Add(const PassObserver::Step& step);

  uint64_t batches() const { return sums_.batches; }
  uint64_t unlabelled() const { return unlabelled_; }  // samples without labels, of this process
  // Of the steps since the last TakeInterval, which starts the next interval.
  IntervalReport Interval() const;
  IntervalReport TakeInterval();
  EpochReport Epoch(const char* what) const;

  // The metrics of a pass survive a resume; speeds begin anew. Of one binary output the bytes are those of versions
  // that knew no other.
  std::string Serialize() const;
  // DATA_LOSS if the bytes are damaged or of other outputs; nothing has changed then.
  absl::Status Restore(std::string_view bytes);
  // Adds what another worker's meter of the pass serialised. Errors as Restore.
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
  // What is serialised, in that order, before the outputs.
  struct Sums {
    uint64_t batches = 0;
    double loss = 0;
    double weight = 0;
  };
  struct Parsed {
    Sums sums;
    std::vector<OutputMeter> outputs;
  };

  PassMeter(uint64_t epoch, std::vector<OutputMeter> outputs);
  bool IsOneBinary() const;
  absl::StatusOr<Parsed> Parse(std::string_view bytes) const;

  const uint64_t epoch_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  uint64_t samples_here_ = 0;  // in this process, for the speed
  uint64_t unlabelled_ = 0;    // of them, samples without labels
  Sums sums_;
  std::vector<OutputMeter> outputs_;
  Costs interval_;
};

}  // namespace regatta::train
