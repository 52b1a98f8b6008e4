// What a worker's heartbeats tell of its work, and what the first worker makes of everybody's.
// Thread-safety: one call at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "fleet/worker_node.h"
#include "train/report.h"
#include "train/trainer.h"

namespace regatta::worker {

// The job's figures from its workers' own. Speeds and losses are those of workers in the middle of an epoch; nothing
// where none of them has told its own yet.
std::optional<train::ClusterReport> MergeProgress(const std::map<int, client::WorkerProgress>& workers);

class JobProgress {
 public:
  explicit JobProgress(fleet::WorkerNode& worker);

  void BeginEpoch(uint64_t epoch);
  void Add(const train::PassObserver::Step& step);
  void EndEpoch();

  // The whole job, as far as its heartbeats have told; nothing in workers that do not report.
  std::optional<train::ClusterReport> Cluster() const;

 private:
  using Clock = std::chrono::steady_clock;
  // Since the last time that speeds were told.
  struct Window {
    uint64_t samples = 0;
    double loss = 0;
    double weight = 0;
    Clock::time_point since = Clock::now();
  };
  struct Staleness {
    uint64_t pushes = 0;
    uint64_t sum = 0;
  };
  void TakeWindow();
  Staleness ReadStaleness() const;

  fleet::WorkerNode& worker_;
  client::WorkerProgress progress_;
  Window window_;
  Staleness told_;  // what ReadStaleness said when the window began
};

}  // namespace regatta::worker
