#include "data/text_writer.h"

#include <zlib.h>
#include <zstd.h>

#include <vector>

#include "base/output_file.h"

namespace regatta::data {
namespace {

using base::OutputFile;

class PlainWriter final : public TextWriter {
 public:
  explicit PlainWriter(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}
  absl::Status Write(std::string_view text) override { return file_->Append(text); }
  absl::Status Close() override { return file_->Commit(OutputFile::Durability::kNamed); }

 private:
  const std::unique_ptr<OutputFile> file_;
};

class GzipWriter final : public TextWriter {
 public:
  explicit GzipWriter(std::unique_ptr<OutputFile> file) : file_(std::move(file)), output_(kOutputBytes) {}
  ~GzipWriter() override { deflateEnd(&stream_); }
  absl::Status Init() {
    // 15 bits of window, +16: a gzip header.
    if (deflateInit2(&stream_, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK)
      return absl::OkStatus();
    return absl::ResourceExhaustedError("cannot start zlib");
  }
  absl::Status Write(std::string_view text) override {
    // zlib counts in 32 bits.
    for (; text.size() > kMostInput; text.remove_prefix(kMostInput))
      RETURN_IF_ERROR(Compress(text.substr(0, kMostInput), Z_NO_FLUSH));
    return Compress(text, Z_NO_FLUSH);
  }
  absl::Status Close() override {
    RETURN_IF_ERROR(Compress("", Z_FINISH));
    return file_->Commit(OutputFile::Durability::kNamed);
  }

 private:
  static constexpr size_t kOutputBytes = 128 << 10;
  static constexpr size_t kMostInput = 1 << 30;

  absl::Status Compress(std::string_view text, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      deflate(&stream_, flush);  // cannot fail: the stream is whole and there is room
      RETURN_IF_ERROR(file_->Append(output_.data(), output_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<OutputFile> file_;
  std::vector<char> output_;
  z_stream stream_{};
};

class ZstdWriter final : public TextWriter {
 public:
  explicit ZstdWriter(std::unique_ptr<OutputFile> file)
      : file_(std::move(file)), stream_(ZSTD_createCStream()), output_(ZSTD_CStreamOutSize()) {
    if (stream_ != nullptr) ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdWriter() override { ZSTD_freeCStream(stream_); }
  absl::Status Write(std::string_view text) override { return Compress(text, ZSTD_e_continue); }
  absl::Status Close() override {
    RETURN_IF_ERROR(Compress("", ZSTD_e_end));
    return file_->Commit(OutputFile::Durability::kNamed);
  }

 private:
  absl::Status Compress(std::string_view text, ZSTD_EndDirective directive) {
    if (stream_ == nullptr) return absl::ResourceExhaustedError("cannot start zstd");
    ZSTD_inBuffer in = {text.data(), text.size(), 0};
    while (true) {
      ZSTD_outBuffer out = {output_.data(), output_.size(), 0};
      const size_t left = ZSTD_compressStream2(stream_, &out, &in, directive);
      if (ZSTD_isError(left)) return absl::InternalError(absl::StrCat(file_->path(), ": ", ZSTD_getErrorName(left)));
      RETURN_IF_ERROR(file_->Append(output_.data(), out.pos));
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return absl::OkStatus();
    }
  }

  const std::unique_ptr<OutputFile> file_;
  ZSTD_CStream* const stream_;
  std::vector<char> output_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextWriter>> TextWriter::Create(const std::string& path, Compression compression) {
  ASSIGN_OR_RETURN(auto file, OutputFile::Create(path, base::NamedBy::kProgram));
  if (compression == Compression::kGzip) {
    auto writer = std::make_unique<GzipWriter>(std::move(file));
    RETURN_IF_ERROR(writer->Init());
    return writer;
  }
  if (compression == Compression::kZstd) return std::make_unique<ZstdWriter>(std::move(file));
  return std::make_unique<PlainWriter>(std::move(file));
}

}  // namespace regatta::data
