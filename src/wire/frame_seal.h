// The checksums of the frames that go one way on a stream. Each covers the frame's bytes and its place among the
// others, so that a frame that was changed, lost or repeated on its way is found before it is used. Thread-safety:
// belongs to one thread at a time.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "base/status.h"

namespace regatta::wire {

inline constexpr uint8_t kChecksumTag = (3 << 3) | 5;  // field 3 of Frame, fixed32
inline constexpr size_t kChecksumBytes = 5;            // with its tag

class FrameSeal {
 public:
  // The frame with its checksum, as the next one that is sent.
  grpc::ByteBuffer Put(const grpc::ByteBuffer& frame);
  // UNAVAILABLE unless it is the next one that was sent, and as it was sent: nothing that follows can be believed.
  absl::Status Check(const grpc::ByteBuffer& frame);

 private:
  uint64_t next_ = 0;
};

}  // namespace regatta::wire
