// The file of `regatta infer --predictions`: a line for each sample in the order of the data, whichever thread finishes
// first: the predictions of all outputs, then the labels that were read, separated by spaces.
// Thread-safety: one call at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/output_file.h"
#include "base/status.h"
#include "data/batch.h"
#include "train/step_runner.h"

namespace regatta::worker {

class PredictionFile {
 public:
  // `schema` is that of the data.
  static absl::StatusOr<std::unique_ptr<PredictionFile>> Create(const std::string& path, const data::Schema& schema);

  absl::Status Add(const train::StepResult& result);
  // The file appears. Every batch of the pass has been added.
  absl::Status Commit();

 private:
  explicit PredictionFile(const data::Schema& schema) : schema_(schema) {}
  void AppendSample(const train::StepResult& result, size_t sample, std::string& text) const;

  const data::Schema schema_;
  std::unique_ptr<base::OutputFile> out_;
  std::map<uint64_t, std::string> waiting_;  // batches whose predecessors are not there yet
  uint64_t next_ = 0;
};

}  // namespace regatta::worker
