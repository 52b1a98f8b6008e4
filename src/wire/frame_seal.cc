#include "wire/frame_seal.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/crc32c.h"

namespace regatta::wire {
namespace {

absl::Status Changed(const char* what) {
  return absl::UnavailableError(absl::StrCat("the network changed what it carried: ", what));
}

}  // namespace

grpc::ByteBuffer FrameSeal::Put(const grpc::ByteBuffer& frame) {
  std::vector<grpc::Slice> slices;
  if (!frame.Dump(&slices).ok()) return frame;  // an empty one; it will be refused
  uint32_t crc = 0;
  for (const grpc::Slice& slice : slices) crc = base::Crc32c(slice.begin(), slice.size(), crc);
  crc = base::Crc32c(&next_, sizeof next_, crc);
  ++next_;
  uint8_t seal[kChecksumBytes] = {kChecksumTag};
  std::memcpy(seal + 1, &crc, sizeof crc);
  slices.emplace_back(seal, sizeof seal);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::Status FrameSeal::Check(const grpc::ByteBuffer& frame) {
  const size_t total = frame.Length();
  std::vector<grpc::Slice> slices;
  if (total < kChecksumBytes || !frame.Dump(&slices).ok()) return Changed("a frame has no checksum");
  size_t left = total - kChecksumBytes;  // of what it covers
  uint32_t crc = 0;
  uint8_t seal[kChecksumBytes];
  size_t found = 0;  // bytes of the seal
  for (const grpc::Slice& slice : slices) {
    const size_t covered = std::min(left, slice.size());
    if (covered > 0) crc = base::Crc32c(slice.begin(), covered, crc);
    left -= covered;
    std::memcpy(seal + found, slice.begin() + covered, slice.size() - covered);
    found += slice.size() - covered;
  }
  crc = base::Crc32c(&next_, sizeof next_, crc);
  ++next_;
  if (seal[0] != kChecksumTag) return Changed("a frame has no checksum");
  if (std::memcmp(seal + 1, &crc, sizeof crc) != 0) return Changed("a frame's checksum is wrong");
  return absl::OkStatus();
}

}  // namespace regatta::wire
