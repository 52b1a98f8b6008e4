// What a run prints: a line (or a JSON object) an interval and an epoch, and the live line on a terminal.
// Thread-safety: belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "train/output_report.h"

namespace regatta::train {

enum class ReportStyle : uint8_t {
  kLines,     // PaddleRec's lines
  kTerminal,  // one live line, and PaddleRec's line at the end of an epoch
  kJson,      // one object a report
};

// The whole job, as its workers' heartbeats of the last seconds tell it.
struct ClusterReport {
  int workers = 0;       // that are there
  uint64_t samples = 0;  // of all, since they began
  double loss = 0;
  double samples_per_second = 0;
  // Of the workers that are in the middle of an epoch; nothing while fewer than two are.
  struct Slowest {
    int worker = 0;
    double share = 0;  // its speed over the mean
  };
  std::optional<Slowest> slowest;
  std::optional<double> staleness;  // updates between a step's pull and its push; in async and half_async
};

// True averages over the steps since the last report, of this process.
struct IntervalReport {
  uint64_t epoch = 0;
  uint64_t batches = 0;  // done in this epoch
  // Of the epoch so far, in the order of NetSpec::outputs; of a binary output AUC and samples alone. None in a pass
  // over data without labels, which has no loss either.
  std::vector<OutputReport> outputs;
  double loss = 0;
  double reader_seconds = 0;  // a batch
  double batch_seconds = 0;
  double samples = 0;  // a batch
  double samples_per_second = 0;
  std::optional<ClusterReport> cluster;  // the first worker's only
};

struct EpochReport {
  const char* what = "epoch";  // "epoch", "validation of epoch", "infer epoch"
  uint64_t epoch = 0;
  double seconds = 0;
  double loss = 0;
  double samples_per_second = 0;
  uint64_t samples = 0;
  // In the order of NetSpec::outputs. None in a pass over data without labels, which has no loss either.
  std::vector<OutputReport> outputs;
  uint64_t bad_lines = 0;
  bool all_metrics = false;

  // Of the first output, which most nets have alone; nothing if it is no binary one or a class is missing.
  std::optional<double> auc() const {
    return outputs.empty() || outputs[0].binary() == nullptr ? std::nullopt : outputs[0].binary()->auc;
  }
};

class Reporter {
 public:
  Reporter(ReportStyle style, ReportAuc auc) : style_(style), auc_(auc) {}

  void Interval(const IntervalReport& report);
  // Rewrites the live line, a few times a second at most; nothing in the other styles.
  void Live(const IntervalReport& report, const data::Progress& progress);
  void Epoch(const EpochReport& report);
  // A line of its own, clear of the live one.
  void Note(const std::string& text);

  ReportStyle style() const { return style_; }

 private:
  void ClearLive();

  const ReportStyle style_;
  const ReportAuc auc_;
  bool live_ = false;
  std::chrono::steady_clock::time_point last_live_;
  std::chrono::steady_clock::time_point live_since_;
  uint64_t live_epoch_ = 0;
};

}  // namespace regatta::train
