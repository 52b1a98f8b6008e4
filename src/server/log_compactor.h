// Keeps a durable server's log short. Now and then it writes the server's part of the model as of one moment, in the
// background, while changes go on, and forgets what the log holds of the time before. A checkpoint is whole, or holds
// what has changed since the one before it; a whole one and those upon it are a chain. The newest chain and the one
// before it are kept, and the log from the newest checkpoint of the older chain on: whatever one file is damaged, the
// server comes back all the same. What the log says of the job, and of its rounds, is compacted when it has
// grown.
// Thread-safety: Save is for one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "metrics/counter.h"
#include "server/hosted_job.h"
#include "server/journal.h"
#include "server/local_saves.h"

namespace regatta::server {

struct CompactorOptions {
  uint64_t log_bytes = uint64_t{4} << 30;  // what the log may come to, about
  size_t chain = 4;                        // checkpoints of one
  uint64_t job_bytes = 1 << 20;            // by which the job's own log may grow before it is compacted
  // How long a push may wait for its last frame: the log cannot be made short behind its first one.
  std::chrono::duration<double> held{60};
};

class LogCompactor {
 public:
  // Both outlive the compactor.
  static absl::StatusOr<std::unique_ptr<LogCompactor>> Start(HostedJob& job, Journal& journal,
                                                             const CompactorOptions& options);
  ~LogCompactor();
  // Of a lane's log: segments are dropped whole, so they must be small against what a checkpoint drops.
  static uint64_t SegmentBytes(const CompactorOptions& options, int lanes);

  // A checkpoint now. After an error everything is as before, and changes go on. UNAVAILABLE while a checkpoint of the
  // whole job is read.
  absl::Status Save();
  uint64_t saves() const { return saves_.value(); }

 private:
  LogCompactor(HostedJob& job, Journal& journal, const CompactorOptions& options)
      : job_(job), journal_(journal), options_(options), local_(journal.folder()) {}
  void Run();
  // The job's own log is short afterwards, or was not long.
  absl::Status CompactJobLogIfLong();
  absl::Status Forget();
  // Where the newest chain begins in kept_, and the one before it; 0 where there is none before.
  size_t ChainAt(size_t last) const;
  absl::StatusOr<std::unique_ptr<checkpoint::ModelSnapshot>> BeginSnapshot(checkpoint::SnapshotOptions& options);

  HostedJob& job_;
  Journal& journal_;
  const CompactorOptions options_;
  const LocalSaves local_;
  std::vector<LocalSaves::Kept> kept_;  // oldest first
  metrics::Counter saves_;
  uint64_t compacted_bytes_ = 0;  // of the job's own log, when it was compacted

  base::Mutex mu_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace regatta::server
