// A source of batches. Batch k of a pass is a pure function of the files, seed, batch size and split, whatever the
// number of reader threads.
// Thread-safety: Next, Interrupt and Recycle are concurrent, and Interrupt may come while BeginPass runs; the rest is
// called between passes by one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/step.h"
#include "data/batch.h"

namespace regatta::data {

struct Progress {
  uint64_t bytes_done = 0;  // of the files on disk, so a share of bytes_total even for .gz
  uint64_t bytes_total = 0;
  uint64_t samples = 0;
  uint64_t bad_lines = 0;
  // Seconds of all threads a stage took, for dataset_debug.
  double read_seconds = 0;     // readers: files, decompression, pipe_command
  double parse_seconds = 0;    // readers: text to samples
  double blocked_seconds = 0;  // readers: waiting for room
  double merge_seconds = 0;    // Next: samples to batches
  double wait_seconds = 0;     // Next: waiting for readers
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Starts reading pass done.pass; batches that `done` contains are not given again.
  virtual absl::Status BeginPass(const base::DataPosition& done) = 0;
  // The next batch in order of index, or nullptr at the end of the pass. Every thread gets nullptr from then on.
  virtual absl::StatusOr<std::unique_ptr<Batch>> Next() = 0;
  // Ends a pass early: a BeginPass or Next that waits for data returns soon, the former with CANCELLED. Concurrent, but
  // between the pass's beginning and EndPass only.
  virtual void Interrupt() = 0;
  // Gives a batch's memory back for reuse.
  virtual void Recycle(std::unique_ptr<Batch> batch) = 0;
  // Stops readers, joins them, reports what the pass came to: an error where it held no good sample, or no
  // id of a declared slot.
  virtual absl::Status EndPass() = 0;
  virtual Progress progress() const = 0;
};

}  // namespace regatta::data
