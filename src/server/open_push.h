// What a request, or the frames of a push so far, have brought. A frame is taken whole or not at all, and a push whose
// frame was refused is dropped: its later frames find nothing to follow.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "server/hosted_job.h"
#include "server/section_reader.h"
#include "server/step_part.h"
#include "wire/frame.h"
#include "wire/lanes.h"

namespace regatta::server {

class OpenPush {
 public:
  // `shards` are the lane's, `memory` the worker's.
  OpenPush(const HostedJob& job, wire::Range shards, std::shared_ptr<PushMemory> memory)
      : job_(job), sections_(job, shards), memory_(std::move(memory)) {}

  // More frames are to come.
  bool open() const { return open_; }
  // A place for every table of the job, or the dense block.
  StepPart& part() { return part_; }

  // A frame of a push that is applied whole: it follows the one before it, or begins a push. After an error call Drop.
  // RESOURCE_EXHAUSTED if the worker holds too much here.
  absl::Status Append(wire::FrameReader& frame, RequestOrigin origin);
  // A frame of a push whose frames are applied one by one.
  absl::Status ReadGradients(wire::FrameReader& frame);
  // A frame of differences, the same.
  absl::Status ReadDifferences(wire::FrameReader& frame);
  // A frame of a gradient (or a difference) of the dense block, which stands alone. In sync it is held as pushes are.
  absl::Status ReadBlock(wire::FrameReader& frame, RequestOrigin origin);

  // Frames that are still to come are refused.
  void Close() { open_ = false; }
  // The same, and the memory is given back.
  void Drop() { Take(); }
  // It waits no more. The memory of a small one is kept for the next.
  void Applied();
  StepPart Take() {
    open_ = false;
    return std::exchange(part_, {});
  }

 private:
  using Width = int (table::SparseTable::*)() const;
  absl::StatusOr<bool> Continues(const ps::FrameHeader& header, RequestOrigin origin) const;
  void Begin(const ps::FrameHeader& header, Width width);
  // The bytes that the push has with the frame.
  absl::StatusOr<uint64_t> CheckSize(const ps::FrameHeader& header) const;
  // Room for so many frames like the first: memory that grows by copies is there twice. It costs nothing before it is
  // used.
  void Reserve(const ps::FrameHeader& header, uint64_t frames);
  absl::Status ReadAlone(wire::FrameReader& frame, Width width);
  absl::Status ReadSections(wire::FrameReader& frame);
  absl::Status ReadRate(wire::FrameReader& frame, const ps::Section& section, TablePart& table);
  absl::Status ReadNothing(const ps::FrameHeader& header);

  const HostedJob& job_;
  const SectionReader sections_;
  const std::shared_ptr<PushMemory> memory_;
  StepPart part_;  // its memory is reused
  bool open_ = false;
  uint64_t id_ = 0;      // of its last frame so far
  uint32_t number_ = 0;  // the same, as the push counts frames; 0 = it does not (protocol 3)
};

}  // namespace regatta::server
