// Reads the sections of a frame, which name tables and bring keys. Nothing in them is believed: tables are the job's,
// keys are of the lane's virtual shards and grouped by them, counts are within the limits.
// Thread-safety: all methods are concurrent.
#pragma once

#include "base/key.h"
#include "base/raw_vector.h"
#include "base/status.h"
#include "server/hosted_job.h"
#include "wire/frame.h"
#include "wire/lanes.h"

namespace regatta::server {

// kEnds: the first and the last key of a section. That is enough for a pull: the table's walk refuses shards that
// descend, and a walk that fails has changed nothing. A push is applied whole or not at all, so all its keys are
// checked.
enum class KeyCheck : uint8_t { kAll, kEnds };

absl::Status CheckPrecision(const ps::FrameHeader& header);
uint64_t CountKeys(const ps::FrameHeader& header);

class SectionReader {
 public:
  // `shards` are the lane's.
  SectionReader(const HostedJob& job, wire::Range shards) : job_(job), shards_(shards) {}

  // Every section names a table of the job, each once, and there are not too many keys.
  absl::Status Check(const ps::FrameHeader& header) const;
  // Appends the section's keys, which are next in the frame's body, to those of earlier frames of the same push.
  absl::Status ReadKeys(wire::FrameReader& frame, const ps::Section& section, KeyCheck check,
                        base::RawVector<base::Key>& keys) const;

 private:
  const HostedJob& job_;
  const wire::Range shards_;
};

}  // namespace regatta::server
