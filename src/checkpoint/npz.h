// NumPy's .npz: a zip of .npy arrays. Written stored (as numpy.savez does); read stored or deflated.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"
#include "base/status.h"

namespace regatta::checkpoint {

struct NpyArray {
  std::string dtype;  // "<f4", "<u8", "<i8"
  std::vector<uint64_t> shape;
  std::string data;

  uint64_t elements() const;
};

struct NpyDescription {
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t stored_bytes = 0;  // in the file, perhaps compressed
};

// Writes arrays one after the other, streaming (into a pipe too); the file appears when it is finished.
class NpzWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NpzWriter>> Create(const std::string& path);

  absl::Status BeginArray(const std::string& name, const std::string& dtype, const std::vector<uint64_t>& shape);
  absl::Status Append(const void* data, size_t size);
  // INTERNAL where fewer or more bytes came than the shape says.
  absl::Status EndArray();
  absl::Status Finish();

 private:
  struct Member {
    std::string name;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint32_t crc = 0;
  };
  explicit NpzWriter(std::unique_ptr<base::OutputFile> file) : file_(std::move(file)) {}
  absl::Status WriteDirectory();

  const std::unique_ptr<base::OutputFile> file_;
  std::vector<Member> members_;
  uint64_t left_ = 0;  // bytes of the present array still to come
};

class NpzReader {
 public:
  // Where the bytes come from: a file, or memory in tests.
  class Source {
   public:
    virtual ~Source() = default;
    virtual uint64_t size() const = 0;
    virtual absl::Status ReadAt(uint64_t offset, void* out, size_t size) const = 0;
  };

  static absl::StatusOr<NpzReader> Open(const std::string& path);
  static absl::StatusOr<NpzReader> FromBytes(std::string bytes);

  std::vector<std::string> names() const;
  bool Contains(std::string_view name) const { return Find(name).ok(); }
  // Without the data: what is not wanted need not be read.
  absl::StatusOr<NpyDescription> Describe(std::string_view name) const;
  // An error names the array and what is wrong with it.
  absl::StatusOr<NpyArray> Read(std::string_view name) const;

 private:
  struct Member {
    std::string name;
    uint16_t method = 0;
    uint32_t crc = 0;
    uint64_t compressed = 0;
    uint64_t bytes = 0;
    uint64_t offset = 0;  // of the local header
  };
  explicit NpzReader(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  static absl::StatusOr<NpzReader> From(std::shared_ptr<const Source> source);
  absl::Status ReadDirectory(uint64_t offset, uint64_t bytes, uint64_t entries);
  absl::StatusOr<const Member*> Find(std::string_view name) const;
  // The first `wanted` bytes or a few less; all of them, and their checksum right, where it has no more than that.
  absl::StatusOr<std::string> ReadMember(const Member& member, uint64_t wanted) const;

  std::shared_ptr<const Source> source_;
  std::vector<Member> members_;
  std::unordered_map<std::string, size_t> index_;  // by name
};

// The array in the bytes of a .npy file.
absl::StatusOr<NpyArray> ParseNpy(std::string bytes);

}  // namespace regatta::checkpoint
