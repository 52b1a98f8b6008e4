// Reads and parses files with several threads and gives the parsed blocks in the order of the files and their lines.
// The input is cut into items (pieces of a plain file, or a whole compressed or piped one); readers claim items in
// order, and each item has a queue of the blocks parsed from it.
// Thread-safety: Next by one thread at a time; Recycle is concurrent; Interrupt is concurrent.
// Invariant: the item at the head was claimed before any later one, so a wait for it is a wait for a running reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "data/dataset_options.h"
#include "data/parser/format.h"
#include "data/progress_meter.h"
#include "data/sample_block.h"
#include "data/source/line_source.h"

namespace regatta::data {

class OrderedReader {
 public:
  // `format` is what the files (or what the pipe_command makes of them) hold. `meter` gets the readers' times; it
  // outlives the reader, so that it may be looked at any time.
  OrderedReader(const DatasetOptions& options, const FormatEntry& format, ProgressMeter& meter);
  ~OrderedReader();

  // Looks at the files (a missing one is an error) and starts the readers.
  absl::Status Start();
  // The next block, or nullptr at the end or after Stop. An error of a file comes in its place in the order.
  absl::StatusOr<std::unique_ptr<SampleBlock>> Next();
  void Recycle(std::unique_ptr<SampleBlock> block);
  // Makes a Next that waits return, and the readers end soon. Concurrent.
  void Interrupt();
  // Interrupts and joins the readers.
  void Stop();

  bool stopped() const { return stop_; }
  uint64_t bytes_total() const { return bytes_total_; }

 private:
  using Clock = ProgressMeter::Clock;
  struct Item {
    int file = 0;
    ByteRange range;
    bool is_piece = false;  // of a plain file
    // Guarded by mu_.
    std::deque<std::unique_ptr<SampleBlock>> blocks;
    uint64_t bytes = 0;  // of blocks
    absl::Status status;
    bool done = false;
  };

  absl::Status AddItems();
  void Run();
  // The next item to read, or nullptr when there is none left. Waits while too far ahead.
  Item* Claim();
  absl::Status ReadItem(Item& item, LineSource& lines, Parser& parser);
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenItem(const Item& item) const;
  std::unique_ptr<SampleBlock> FreshBlock();
  // False when stopped.
  bool Put(Item& item, std::unique_ptr<SampleBlock> block);
  void NumberLines(SampleBlock& block);
  void WarnIfEmpty(int file) const;

  // Constant after Start.
  const DatasetOptions options_;
  const FormatEntry& format_;
  const std::vector<uint64_t> salts_;  // one for each slot; empty if ids are shared
  uint64_t bytes_total_ = 0;
  uint64_t item_bytes_ = 0;  // most that an item's queue holds before its reader waits
  std::vector<std::thread> threads_;

  std::atomic<bool> stop_{false};
  ProgressMeter& meter_;

  // For the thread that calls Next.
  int file_ = -1;
  uint64_t file_lines_ = 0;

  base::Mutex mu_;
  base::CondVar room_;      // readers wait
  base::CondVar ready_;     // Next waits
  std::deque<Item> items_;  // read under mu_; Item's constant members without
  size_t claimed_ ABSL_GUARDED_BY(mu_) = 0;
  size_t head_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<SampleBlock>> spare_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::data
