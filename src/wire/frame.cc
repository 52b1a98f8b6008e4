#include "wire/frame.h"

#include <grpc/slice.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "wire/frame_seal.h"

namespace regatta::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "rows cross the wire as little-endian bytes");

constexpr uint8_t kHeaderTag = (1 << 3) | 2;  // field 1, length-delimited
constexpr uint8_t kBodyTag = (2 << 3) | 2;

size_t VarintBytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

uint8_t* WriteVarint(uint64_t value, uint8_t* out) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<uint8_t>(value | 0x80);
  *out++ = static_cast<uint8_t>(value);
  return out;
}

}  // namespace

FrameWriter::FrameWriter(const ps::FrameHeader& header, size_t body_bytes) {
  const size_t header_bytes = header.ByteSizeLong();
  const size_t total =
      1 + VarintBytes(header_bytes) + header_bytes + (body_bytes > 0 ? 1 + VarintBytes(body_bytes) + body_bytes : 0);
  const grpc_slice whole = grpc_slice_malloc(total + kAlignment);
  const auto body_begin = reinterpret_cast<uintptr_t>(GRPC_SLICE_START_PTR(whole)) + (total - body_bytes);
  const size_t pad = (kAlignment - body_begin % kAlignment) % kAlignment;
  slice_ = grpc_slice_sub_no_ref(whole, pad, pad + total);
  uint8_t* out = GRPC_SLICE_START_PTR(slice_);
  *out++ = kHeaderTag;
  out = WriteVarint(header_bytes, out);
  out = header.SerializeWithCachedSizesToArray(out);
  if (body_bytes > 0) {
    *out++ = kBodyTag;
    out = WriteVarint(body_bytes, out);
  }
  next_ = out;
}

FrameWriter::~FrameWriter() {
  if (!finished_) grpc_slice_unref(slice_);
}

void FrameWriter::Append(const void* data, size_t bytes) {
  if (bytes > 0) std::memcpy(Take(bytes), data, bytes);
}

uint8_t* FrameWriter::Take(size_t bytes) {
  uint8_t* taken = next_;
  next_ += bytes;
  return taken;
}

grpc::ByteBuffer FrameWriter::Finish() {
  finished_ = true;
  const grpc::Slice slice(slice_, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

FrameReader::FrameReader(grpc::ByteBuffer& buffer) : total_(buffer.Length()), chunks_(&buffer) {}

absl::Status FrameReader::Open() {
  if (!chunks_.status().ok()) return absl::InvalidArgumentError("the frame cannot be read");
  uint8_t tag = 0;
  uint64_t bytes = 0;
  if (!ReadByte(&tag) || tag != kHeaderTag || !ReadVarint(&bytes))
    return absl::InvalidArgumentError("the frame does not begin with a header");
  if (bytes > kMaxHeaderBytes || bytes > total_ - consumed_)
    return absl::InvalidArgumentError(absl::StrCat("the frame's header claims ", bytes, " bytes"));
  std::string header(bytes, '\0');
  if (!Copy(header.data(), bytes) || !header_.ParseFromString(header))
    return absl::InvalidArgumentError("the frame's header is not one");
  const size_t rest = total_ - consumed_;
  if (rest == 0) return absl::OkStatus();
  if (!ReadByte(&tag)) return absl::InvalidArgumentError("the frame is shorter than its length");
  if (tag == kChecksumTag && rest == kChecksumBytes) return absl::OkStatus();
  if (tag != kBodyTag || !ReadVarint(&bytes))
    return absl::InvalidArgumentError("the frame's header is not followed by a body");
  if (bytes != total_ - consumed_ && (bytes > kMaxFrameBytes || bytes + kChecksumBytes != total_ - consumed_))
    return absl::InvalidArgumentError(
        absl::StrCat("the frame's body claims ", bytes, " bytes and has ", total_ - consumed_));
  left_ = bytes;
  return absl::OkStatus();
}

absl::Status FrameReader::Read(void* out, size_t bytes) {
  if (bytes > left_)
    return absl::InvalidArgumentError(
        absl::StrCat("the frame's body ends ", bytes - left_, " bytes before what its header says"));
  left_ -= bytes;
  if (!Copy(out, bytes)) return absl::InvalidArgumentError("the frame is shorter than its length");
  return absl::OkStatus();
}

absl::Status FrameReader::ExpectEnd() const {
  if (left_ == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the frame's body has ", left_, " bytes more than its header says"));
}

bool FrameReader::NextChunk() {
  const void* data = nullptr;
  int bytes = 0;
  do {
    if (!chunks_.Next(&data, &bytes)) return false;
  } while (bytes == 0);
  at_ = static_cast<const uint8_t*>(data);
  chunk_left_ = static_cast<size_t>(bytes);
  return true;
}

bool FrameReader::Copy(void* out, size_t bytes) {
  auto* to = static_cast<uint8_t*>(out);
  while (bytes > 0) {
    if (chunk_left_ == 0 && !NextChunk()) return false;
    const size_t part = std::min(bytes, chunk_left_);
    std::memcpy(to, at_, part);
    to += part;
    at_ += part;
    chunk_left_ -= part;
    consumed_ += part;
    bytes -= part;
  }
  return true;
}

bool FrameReader::ReadByte(uint8_t* out) { return Copy(out, 1); }

bool FrameReader::ReadVarint(uint64_t* out) {
  *out = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte = 0;
    if (!ReadByte(&byte)) return false;
    *out |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace regatta::wire
