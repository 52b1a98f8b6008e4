#include <zlib.h>

#include <cstring>

#include "absl/strings/str_join.h"
#include "checkpoint/npz.h"

namespace regatta::checkpoint {
namespace {

constexpr uint16_t kDescriptorFollows = 1 << 3;  // a flag of a member

template <typename... T>
std::string Packed(T... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return bytes;
}

// Version 1 of the .npy header, padded to 64 bytes as numpy does.
absl::StatusOr<std::string> NpyHeader(const std::string& dtype, const std::vector<uint64_t>& shape) {
  const std::string dict = absl::StrCat("{'descr': '", dtype, "', 'fortran_order': False, 'shape': (",
                                        absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")", ", }");
  const size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  if (total - 10 > UINT16_MAX) return absl::InvalidArgumentError("an array has too many dimensions");
  return absl::StrCat(absl::string_view("\x93NUMPY\x01\x00", 8), Packed(static_cast<uint16_t>(total - 10)), dict,
                      std::string(total - 10 - dict.size() - 1, ' '), "\n");
}

uint64_t ItemBytes(const std::string& dtype) { return static_cast<uint64_t>(dtype.back() - '0'); }

}  // namespace

uint64_t NpyArray::elements() const {
  uint64_t n = 1;
  for (const uint64_t d : shape) n *= d;
  return n;
}

absl::StatusOr<std::unique_ptr<NpzWriter>> NpzWriter::Create(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, base::OutputFile::Create(path));
  return std::unique_ptr<NpzWriter>(new NpzWriter(std::move(file)));
}

// Nothing is written twice, so that the file may be a pipe: a member's checksum and size stand in the descriptor behind
// it and in the directory. Every size is also given as zip64, so arrays may pass 4 GiB.
absl::Status NpzWriter::BeginArray(const std::string& name, const std::string& dtype,
                                   const std::vector<uint64_t>& shape) {
  const std::string file = name + ".npy";
  if (file.size() > UINT16_MAX) return absl::InvalidArgumentError("the name of an array is too long");
  ASSIGN_OR_RETURN(const std::string header, NpyHeader(dtype, shape));
  uint64_t elements = 1;
  for (const uint64_t d : shape) elements *= d;
  const uint64_t bytes = header.size() + elements * ItemBytes(dtype);
  members_.push_back(Member{file, file_->size(), bytes, 0});
  RETURN_IF_ERROR(file_->Append(absl::StrCat(
      "PK\x03\x04", Packed(uint16_t{45}, kDescriptorFollows, uint16_t{0}, uint16_t{0}, uint16_t{0x21}, uint32_t{0}),
      Packed(uint32_t{UINT32_MAX}, uint32_t{UINT32_MAX}, static_cast<uint16_t>(file.size()), uint16_t{20}), file,
      Packed(uint16_t{1}, uint16_t{16}, uint64_t{0}, uint64_t{0}))));
  left_ = bytes;
  return Append(header.data(), header.size());
}

absl::Status NpzWriter::Append(const void* data, size_t size) {
  if (size > left_) return absl::InternalError(absl::StrCat("too many bytes for ", members_.back().name));
  left_ -= size;
  Member& member = members_.back();
  member.crc = static_cast<uint32_t>(crc32_z(member.crc, static_cast<const Bytef*>(data), size));
  return file_->Append(data, size);
}

absl::Status NpzWriter::EndArray() {
  const Member& member = members_.back();
  if (left_ != 0) return absl::InternalError(absl::StrCat(left_, " bytes are missing for ", member.name));
  return file_->Append(absl::StrCat("PK\x07\x08", Packed(member.crc, member.bytes, member.bytes)));
}

absl::Status NpzWriter::WriteDirectory() {
  const uint64_t begin = file_->size();
  for (const Member& m : members_) {
    RETURN_IF_ERROR(file_->Append(absl::StrCat(
        "PK\x01\x02",
        Packed(uint16_t{45}, uint16_t{45}, kDescriptorFollows, uint16_t{0}, uint16_t{0}, uint16_t{0x21}, m.crc),
        Packed(uint32_t{UINT32_MAX}, uint32_t{UINT32_MAX}, static_cast<uint16_t>(m.name.size()), uint16_t{28}),
        Packed(uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, uint32_t{UINT32_MAX}), m.name,
        Packed(uint16_t{1}, uint16_t{24}, m.bytes, m.bytes, m.offset))));
  }
  const uint64_t end = file_->size(), n = members_.size();
  return file_->Append(
      absl::StrCat("PK\x06\x06",
                   Packed(uint64_t{44}, uint16_t{45}, uint16_t{45}, uint32_t{0}, uint32_t{0}, n, n, end - begin, begin),
                   "PK\x06\x07", Packed(uint32_t{0}, end, uint32_t{1}), "PK\x05\x06",
                   Packed(uint16_t{0}, uint16_t{0}, uint16_t{UINT16_MAX}, uint16_t{UINT16_MAX}, uint32_t{UINT32_MAX},
                          uint32_t{UINT32_MAX}, uint16_t{0})));
}

absl::Status NpzWriter::Finish() {
  RETURN_IF_ERROR(WriteDirectory());
  return file_->Commit(base::OutputFile::Durability::kSynced);
}

}  // namespace regatta::checkpoint
