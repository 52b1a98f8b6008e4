#include <zstd.h>

#include <vector>

#include "data/source/byte_source.h"

namespace regatta::data {
namespace {

class ZstdSource final : public ByteSource {
 public:
  ZstdSource(std::string path, std::unique_ptr<ByteSource> file)
      : path_(std::move(path)), file_(std::move(file)), stream_(ZSTD_createDStream()), input_(ZSTD_DStreamInSize()) {}
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    if (stream_ == nullptr) return absl::ResourceExhaustedError("cannot start zstd");
    ZSTD_outBuffer out = {to, size, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size && !ended_) {
        ASSIGN_OR_RETURN(const size_t n, file_->Read(input_.data(), input_.size()));
        ended_ = n == 0;
        in_ = {input_.data(), n, 0};
      }
      if (ended_ && !in_frame_) return 0;
      const size_t in_before = in_.pos;
      const size_t rc = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_isError(rc)) return Error(ZSTD_getErrorName(rc));
      in_frame_ = rc != 0;
      if (ended_ && out.pos == 0 && in_.pos == in_before) {
        if (in_frame_) return Error("the file ends in the middle of a zstd frame");
        return 0;
      }
    }
    return out.pos;
  }
  uint64_t disk_bytes() const override { return file_->disk_bytes() - (in_.size - in_.pos); }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::DataLossError(absl::StrCat(path_, ": unreadable zstd at byte ", disk_bytes(), ": ", base::View(what)));
  }

  const std::string path_;
  const std::unique_ptr<ByteSource> file_;
  ZSTD_DStream* const stream_;
  std::vector<char> input_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool in_frame_ = false;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenZstd(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, OpenPlain(path));
  return std::make_unique<ZstdSource>(path, std::move(file));
}

}  // namespace regatta::data
