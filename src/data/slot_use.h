// Which declared sparse slots hold an id somewhere in the data: names that the data does not have would train a model
// on nothing, without a bad line.
// Thread-safety: belongs to the thread that holds the dataset's merge lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/dataset_options.h"
#include "data/parser/format.h"
#include "data/sample_block.h"

namespace regatta::data {

class SlotUse {
 public:
  SlotUse(const DatasetOptions& options, const FormatEntry& format);

  // Blocks come in order. An error when lines name slots and none of them is a declared one, before any id was seen.
  absl::Status Count(const SampleBlock& block);
  // For data that was read to its end: an error where there was no id at all, a warning for slots without one.
  absl::Status Finish() const;

 private:
  absl::Status NoneOccurs(const std::string& where, const std::string& found) const;

  // Constant after construction.
  const std::vector<std::string> files_;
  const std::vector<std::string> names_;  // as the lines have them

  std::vector<uint32_t> unused_;  // slots without an id so far
  uint64_t samples_ = 0;
};

}  // namespace regatta::data
