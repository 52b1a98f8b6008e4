// A training process as Prometheus reads it: regatta_worker_*, regatta_data_*, and alone regatta_table_*;
// docs/observing.md lists them. Made where --metrics_port is given, and only there.
// Thread-safety: Add and Report one at a time; the rest is concurrent.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "data/dataset.h"
#include "fleet/embedded_tables.h"
#include "fleet/worker_node.h"
#include "metrics/counter.h"
#include "metrics/exposition.h"
#include "metrics/histogram.h"
#include "train/net_spec.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::worker {

class RunMetrics {
 public:
  // Of a net that declares these outputs.
  explicit RunMetrics(const train::NetSpec& spec);

  // Parts of the run, shown from now on. Before one goes it is set to null, or the exporter has ended.
  void Show(const fleet::EmbeddedTables* tables);
  void Show(const fleet::WorkerNode* fleet);
  void Show(const data::Dataset* dataset);

  void Add(const train::PassObserver::Step& step);
  void Report(const train::IntervalReport& report);

  void Collect(metrics::Exposition& out) const;

 private:
  void CollectSteps(metrics::Exposition& out) const;
  static void CollectOutputs(std::span<const train::OutputReport> outputs, metrics::Exposition& out);
  static void CollectTraffic(const fleet::WorkerNode& fleet, metrics::Exposition& out);
  static void CollectData(const data::Progress& progress, metrics::Exposition& out);

  metrics::Counter steps_;
  metrics::Counter samples_;
  metrics::Counter bad_rows_, bad_dense_;                     // gradients with NaN or Inf
  metrics::Histogram read_, pull_, compute_, commit_, step_;  // nanoseconds
  std::atomic<uint64_t> epoch_{0};
  // Of the last report.
  std::atomic<double> loss_{NAN}, samples_per_second_{0};

  mutable base::Mutex mu_;
  std::vector<train::OutputReport> outputs_ ABSL_GUARDED_BY(mu_);  // of the last report, or empty metrics
  const fleet::EmbeddedTables* tables_ ABSL_GUARDED_BY(mu_) = nullptr;
  const fleet::WorkerNode* fleet_ ABSL_GUARDED_BY(mu_) = nullptr;
  const data::Dataset* dataset_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace regatta::worker
