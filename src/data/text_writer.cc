#include "data/text_writer.h"

#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <vector>

#include "base/file.h"

namespace regatta::data {
namespace {

class PlainWriter final : public TextWriter {
 public:
  explicit PlainWriter(std::unique_ptr<base::AppendFile> file) : file_(std::move(file)) {}
  absl::Status Write(std::string_view text) override { return file_->Append(text); }
  absl::Status Close() override { return file_->Close(); }

 private:
  const std::unique_ptr<base::AppendFile> file_;
};

class GzipWriter final : public TextWriter {
 public:
  GzipWriter(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}
  ~GzipWriter() override {
    if (file_ != nullptr) gzclose(file_);
  }
  absl::Status Write(std::string_view text) override {
    if (text.empty() || gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) > 0) return absl::OkStatus();
    return base::ErrnoStatus("cannot write", path_);
  }
  absl::Status Close() override {
    gzFile file = std::exchange(file_, nullptr);
    return gzclose(file) == Z_OK ? absl::OkStatus() : base::ErrnoStatus("cannot close", path_);
  }

 private:
  const std::string path_;
  gzFile file_;
};

class ZstdWriter final : public TextWriter {
 public:
  explicit ZstdWriter(std::unique_ptr<base::AppendFile> file)
      : file_(std::move(file)), stream_(ZSTD_createCStream()), output_(ZSTD_CStreamOutSize()) {
    if (stream_ != nullptr) ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstdWriter() override { ZSTD_freeCStream(stream_); }
  absl::Status Write(std::string_view text) override { return Compress(text, ZSTD_e_continue); }
  absl::Status Close() override {
    RETURN_IF_ERROR(Compress("", ZSTD_e_end));
    return file_->Close();
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

  const std::unique_ptr<base::AppendFile> file_;
  ZSTD_CStream* const stream_;
  std::vector<char> output_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextWriter>> TextWriter::Create(const std::string& path, Compression compression) {
  if (compression == Compression::kGzip) {
    gzFile file = gzopen(path.c_str(), "wb1");
    if (file == nullptr) return base::ErrnoStatus("cannot create", path);
    return std::make_unique<GzipWriter>(path, file);
  }
  ASSIGN_OR_RETURN(auto file, base::AppendFile::Create(path));
  if (compression == Compression::kZstd) return std::make_unique<ZstdWriter>(std::move(file));
  return std::make_unique<PlainWriter>(std::move(file));
}

}  // namespace regatta::data
