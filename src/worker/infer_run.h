// `regatta infer`: the metrics of saved epochs on the test data, and the predictions where asked for. With --no_labels
// the predictions alone.
// Thread-safety: Run is called once, by one thread.
#pragma once

#include "base/status.h"
#include "train/report.h"
#include "train/trainer.h"
#include "worker/job.h"

namespace regatta::worker {

class InferRun {
 public:
  InferRun(Job& job, train::Reporter& reporter);
  absl::Status Run();

 private:
  absl::Status InferEpoch(uint64_t epoch, const std::string& save);

  Job& job_;
  train::Reporter& reporter_;
  train::Trainer trainer_;
  JobData data_;
};

}  // namespace regatta::worker
