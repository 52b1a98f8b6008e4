// The bytes of one input file, as text: plain, .gz and .zst files, and what a pipe_command makes of them.
// Thread-safety: a source belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace regatta::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads 1 … size bytes; 0 at the end. Errors name the file.
  virtual absl::StatusOr<size_t> Read(char* to, size_t size) = 0;
  // Bytes of the file on disk that were read so far.
  virtual uint64_t disk_bytes() const = 0;
};

enum class Compression { kNone, kGzip, kZstd };

// By the name's ending.
Compression CompressionOf(std::string_view path);
// By the name's ending, or else by the file's first bytes.
absl::StatusOr<Compression> RecogniseCompression(const std::string& path);

// Starts `begin` bytes into the file.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenPlain(const std::string& path, uint64_t begin = 0);
// gzip members one after the other are one text.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenGzip(const std::string& path);
absl::StatusOr<std::unique_ptr<ByteSource>> OpenZstd(const std::string& path);
absl::StatusOr<std::unique_ptr<ByteSource>> OpenCompressed(const std::string& path, Compression compression);
// As RecogniseCompression says.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path);

}  // namespace regatta::data
