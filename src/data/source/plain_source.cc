#include <unistd.h>

#include <cerrno>

#include "base/open_file.h"
#include "data/source/byte_source.h"

namespace regatta::data {
namespace {

class PlainSource final : public ByteSource {
 public:
  PlainSource(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PlainSource() override { close(fd_); }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    while (true) {
      const ssize_t n = read(fd_, to, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::ErrnoStatus("cannot read", path_);
      disk_bytes_ += static_cast<uint64_t>(n);
      return static_cast<size_t>(n);
    }
  }
  uint64_t disk_bytes() const override { return disk_bytes_; }

 private:
  const std::string path_;
  const int fd_;
  uint64_t disk_bytes_ = 0;
};

bool EndsWith(std::string_view path, std::string_view ending) {
  return path.size() > ending.size() && path.substr(path.size() - ending.size()) == ending;
}

}  // namespace

Compression CompressionOf(std::string_view path) {
  if (EndsWith(path, ".gz")) return Compression::kGzip;
  if (EndsWith(path, ".zst")) return Compression::kZstd;
  return Compression::kNone;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenPlain(const std::string& path, uint64_t begin) {
  ASSIGN_OR_RETURN(const int fd, base::OpenForReading(path));
  auto source = std::make_unique<PlainSource>(path, fd);
  if (begin > 0 && lseek(fd, static_cast<off_t>(begin), SEEK_SET) < 0) return base::ErrnoStatus("cannot seek in", path);
  return source;
}

absl::StatusOr<Compression> RecogniseCompression(const std::string& path) {
  if (CompressionOf(path) != Compression::kNone) return CompressionOf(path);
  ASSIGN_OR_RETURN(auto file, OpenPlain(path));
  char bytes[4] = {};
  ASSIGN_OR_RETURN(const size_t n, file->Read(bytes, sizeof bytes));
  const std::string_view head(bytes, n);
  if (head.starts_with("\x1F\x8B\x08")) return Compression::kGzip;
  return head == "\x28\xB5\x2F\xFD" ? Compression::kZstd : Compression::kNone;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const Compression compression, RecogniseCompression(path));
  return OpenCompressed(path, compression);
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenCompressed(const std::string& path, Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return OpenGzip(path);
    case Compression::kZstd:
      return OpenZstd(path);
    case Compression::kNone:
      break;
  }
  return OpenPlain(path);
}

}  // namespace regatta::data
