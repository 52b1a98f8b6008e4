// Which files a path stands for, and which of them are a worker's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regatta::data {

// An error that names the path where it is a folder, FIFO, socket or device: training reads its files again and again,
// several threads at a time.
absl::Status CheckRegular(const std::string& path);

// A file, every file of a folder, or a glob; sorted by name, hidden files left out. An error where nothing matches, or
// something does that is no regular file.
absl::StatusOr<std::vector<std::string>> ExpandFiles(const std::string& pattern);

enum class FileSplit {
  kContiguous,  // even blocks of the sorted list, the first ones one file longer
  kMod,         // files whose numeric suffix (train.txt-00003) % count == index
};

// The files of worker `index` of `count`. In kMod a file without a numeric suffix is an error.
absl::StatusOr<std::vector<std::string>> SplitFiles(const std::vector<std::string>& files, int index, int count,
                                                    FileSplit split);

}  // namespace regatta::data
