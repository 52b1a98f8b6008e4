// What a command prints when it is given a file's text on its stdin.
// Thread-safety: belongs to one thread; `stop` may be set by any.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/status.h"
#include "data/dataset_options.h"
#include "data/source/byte_source.h"

namespace regatta::data {

struct PipeOptions {
  std::string command;
  PipeShell shell = PipeShell::kNo;
  std::string folder;  // "" = ours
  double timeout_seconds = 60;
};

// Starts the command on `file`, the text of `path`. Reading fails where the command fails, ends before it has read its
// input, or neither reads nor prints for the timeout, and soon after `stop` is set.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenPipe(std::unique_ptr<ByteSource> file, const std::string& path,
                                                     const PipeOptions& options, const std::atomic<bool>& stop);

}  // namespace regatta::data
