// What becomes of bad lines: counted, kept in a capped quarantine file, an error above the limit.
// Thread-safety: belongs to the thread that holds the dataset's merge lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/dataset_options.h"
#include "data/sample_block.h"

namespace regatta::data {

class BadLineLog {
 public:
  explicit BadLineLog(const DatasetOptions& options);

  // Counts the block's lines. An error where there are more bad ones than allowed; it quotes the first three.
  absl::Status Count(const SampleBlock& block);

  uint64_t lines() const { return lines_; }
  uint64_t bad_lines() const { return bad_lines_; }
  // The error of a pass that was read to its end for nothing.
  absl::Status NoGoodSample() const;

 private:
  void Keep(const std::string& line);

  const std::vector<std::string> files_;
  const std::string pipe_command_;
  const std::optional<uint64_t> max_bad_lines_;
  const std::string quarantine_path_;
  const base::NamedBy quarantine_named_;
  const uint64_t quarantine_max_bytes_;

  uint64_t lines_ = 0;
  uint64_t bad_lines_ = 0;
  int reasons_ = 0;
  std::string first_reasons_;  // "\n  file:line: reason" each
  std::unique_ptr<base::AppendFile> quarantine_;
  bool quarantine_full_ = false;  // or not writable
};

}  // namespace regatta::data
