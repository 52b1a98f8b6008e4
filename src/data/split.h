// Cuts text files into pieces, line by line: train.txt → train.txt-00000, train.txt-00001, … beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace regatta::data {

enum class LineSplit {
  kContiguous,  // even blocks of lines, the first ones one line longer
  kRoundRobin,  // line i goes to piece i % count
};

struct SplitResult {
  std::vector<std::string> pieces;
  uint64_t lines = 0;
};

// A compressed file's pieces are compressed alike (train.txt.gz → train.txt-00000.gz). The original is kept; a piece
// appears under its name when it is complete.
absl::StatusOr<SplitResult> SplitFile(const std::string& path, int count, LineSplit split);

}  // namespace regatta::data
