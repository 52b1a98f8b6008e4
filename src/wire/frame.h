// A frame of a lane: the protobuf message Frame, written and read without a copy of its body. The header is parsed by
// protobuf; the body's bytes go straight from where they are to where they belong. A checksum behind it (frame_seal.h)
// is passed over. Thread-safety: a writer or reader belongs to one thread.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "wire/ps.pb.h"

namespace regatta::wire {

inline constexpr uint32_t kProtocolVersion = 4;
inline constexpr size_t kMaxFrameBytes = 64 << 20;
// Rows of a reply. A worker that reads no replies makes the server hold this much on each of its streams.
inline constexpr size_t kMaxPullBytes = 8 << 20;
inline constexpr uint32_t kMaxKeysAFrame = 1'000'000;
inline constexpr uint64_t kMaxKeysAPush = 16'000'000;         // of all its frames
inline constexpr uint64_t kMaxPushBytes = uint64_t{1} << 30;  // keys and rows of all its frames, in memory
inline constexpr uint32_t kMaxSamplesAPush = 1 << 24;
inline constexpr uint64_t kMaxNumber = uint64_t{1} << 48;  // of a step, a pass or a batch
inline constexpr size_t kMaxHeaderBytes = 64 << 10;
inline constexpr size_t kAlignment = 16;

class FrameWriter {
 public:
  // `body_bytes` is what the appends will come to, exactly.
  FrameWriter(const ps::FrameHeader& header, size_t body_bytes);
  ~FrameWriter();
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

  void Append(const void* data, size_t bytes);
  // The next `bytes` of the body, to be filled by the caller. The body begins at a multiple of kAlignment.
  uint8_t* Take(size_t bytes);
  grpc::ByteBuffer Finish();

 private:
  grpc_slice slice_;
  uint8_t* next_;
  bool finished_ = false;
};

class FrameReader {
 public:
  // `buffer` must outlive the reader. INVALID_ARGUMENT says what is wrong with the bytes.
  explicit FrameReader(grpc::ByteBuffer& buffer);
  absl::Status Open();

  const ps::FrameHeader& header() const { return header_; }
  size_t body_left() const { return left_; }
  // The next bytes of the body; INVALID_ARGUMENT where it has not so many.
  absl::Status Read(void* out, size_t bytes);
  // INVALID_ARGUMENT unless the body is read to its end.
  absl::Status ExpectEnd() const;

 private:
  bool ReadByte(uint8_t* out);
  bool ReadVarint(uint64_t* out);
  bool Copy(void* out, size_t bytes);
  bool NextChunk();

  const size_t total_;
  grpc::ProtoBufferReader chunks_;
  const uint8_t* at_ = nullptr;
  size_t chunk_left_ = 0;
  size_t consumed_ = 0;
  size_t left_ = 0;
  ps::FrameHeader header_;
};

}  // namespace regatta::wire
