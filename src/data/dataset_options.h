// What a dataset reads and how.
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/open_file.h"
#include "data/dataset.h"

namespace regatta::data {

enum class DatasetKind { kQueue, kInMemory };
enum class Shuffle { kNone, kLocal };
enum class PipeShell { kNo, kYes };

struct DatasetOptions {
  DatasetKind kind = DatasetKind::kQueue;
  std::vector<std::string> files = {};  // as ExpandFiles and SplitFiles give them
  // A name of parser/format.h's table; every other ("reader", "") is detected from the first lines. With a
  // pipe_command it is always MultiSlot.
  std::string format = {};
  Schema schema = {};
  int batch_size = 512;
  int readers = 1;
  uint64_t seed = 12345;
  Shuffle shuffle = Shuffle::kNone;  // kLocal needs kInMemory

  std::string pipe_command = {};  // "" = none
  PipeShell pipe_shell = PipeShell::kNo;
  std::string working_folder = {};   // the command runs there; "" = ours
  double pipe_timeout_seconds = 60;  // a command that neither reads nor prints for so long is killed

  std::optional<uint64_t> max_bad_lines = {};  // nothing = 1% of the lines read, at least 100
  uint64_t max_line_bytes = 8 << 20;
  std::string quarantine_path = {};  // "" = bad lines are not kept
  base::NamedBy quarantine_named = base::NamedBy::kProgram;
  uint64_t quarantine_max_bytes = 16 << 20;

  uint64_t block_bytes = 256 << 10;  // text parsed at a time: fits in a core's cache with what comes of it
  uint64_t piece_bytes = 2 << 20;    // of a plain file, read by one reader
  uint64_t buffer_bytes = 64 << 20;  // parsed samples that wait, over all readers
};

}  // namespace regatta::data
