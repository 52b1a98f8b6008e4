#include <zlib.h>

#include <vector>

#include "data/source/byte_source.h"

namespace regatta::data {
namespace {

constexpr size_t kInputBytes = 128 << 10;

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::string path, std::unique_ptr<ByteSource> file)
      : path_(std::move(path)), file_(std::move(file)), input_(kInputBytes) {}
  ~GzipSource() override { inflateEnd(&stream_); }

  absl::Status Init() {
    // 15 bits of window, +16: a gzip header and nothing else.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) return absl::ResourceExhaustedError("cannot start zlib");
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (stream_.avail_in == 0 && !ended_) RETURN_IF_ERROR(Fill());
      if (stream_.avail_in == 0 && ended_) {
        if (in_member_) return Error("the file ends in the middle of a gzip member");
        return 0;
      }
      if (!in_member_) RETURN_IF_ERROR(NextMember());
      const int rc = inflate(&stream_, Z_NO_FLUSH);
      if (rc == Z_STREAM_END) {
        in_member_ = false;
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        return Error(stream_.msg != nullptr ? stream_.msg : "no gzip");
      }
    }
    return size - stream_.avail_out;
  }
  uint64_t disk_bytes() const override { return file_->disk_bytes() - stream_.avail_in; }

 private:
  absl::Status Fill() {
    ASSIGN_OR_RETURN(const size_t n, file_->Read(input_.data(), input_.size()));
    ended_ = n == 0;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(n);
    return absl::OkStatus();
  }
  absl::Status NextMember() {
    if (inflateReset(&stream_) != Z_OK) return Error("zlib cannot restart");
    in_member_ = true;
    return absl::OkStatus();
  }
  absl::Status Error(std::string_view what) const {
    return absl::DataLossError(absl::StrCat(path_, ": unreadable gzip at byte ", disk_bytes(), ": ", base::View(what)));
  }

  const std::string path_;
  const std::unique_ptr<ByteSource> file_;
  std::vector<char> input_;
  z_stream stream_{};
  bool in_member_ = false;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenGzip(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, OpenPlain(path));
  auto source = std::make_unique<GzipSource>(path, std::move(file));
  RETURN_IF_ERROR(source->Init());
  return source;
}

}  // namespace regatta::data
