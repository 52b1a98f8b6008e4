#include "data/split.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"
#include "data/source/line_source.h"
#include "data/text_writer.h"

namespace regatta::data {
namespace {

constexpr size_t kBlockBytes = 1 << 20;
// A line is held in memory while it is moved; this long, it is no line.
constexpr size_t kMaxLineBytes = 1 << 30;

std::string PieceName(const std::string& path, int piece) {
  const std::string ending = CompressionOf(path) == Compression::kGzip   ? ".gz"
                             : CompressionOf(path) == Compression::kZstd ? ".zst"
                                                                         : "";
  return absl::StrFormat("%s-%05d%s", path.substr(0, path.size() - ending.size()), piece, ending);
}

// Calls fn with every line, its '\n' included.
template <typename Fn>
absl::Status ForEachLine(const std::string& path, Fn fn) {
  ASSIGN_OR_RETURN(auto bytes, OpenFile(path));
  LineSource lines(kBlockBytes, kMaxLineBytes);
  lines.Open(std::move(bytes));
  LineBlock block;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.Next(&block));
    if (!more) return absl::OkStatus();
    if (block.dropped_line_bytes > 0)
      return absl::InvalidArgumentError(absl::StrCat(path, " has a line of ", block.dropped_line_bytes, " bytes"));
    for (std::string_view text = block.text; !text.empty();) {
      const size_t size = text.find('\n') + 1;
      RETURN_IF_ERROR(fn(text.substr(0, size)));
      text.remove_prefix(size);
    }
  }
}

}  // namespace

absl::StatusOr<SplitResult> SplitFile(const std::string& path, int count, LineSplit split) {
  if (count < 1 || count > 10'000) return absl::InvalidArgumentError("--count must be 1 to 10000");
  SplitResult result;
  uint64_t total = 0;
  auto count_line = [&total](std::string_view) { return ++total, absl::OkStatus(); };
  if (split == LineSplit::kContiguous) RETURN_IF_ERROR(ForEachLine(path, count_line));

  std::vector<std::unique_ptr<TextWriter>> writers;
  for (int piece = 0; piece < count; ++piece) {
    result.pieces.push_back(PieceName(path, piece));
    ASSIGN_OR_RETURN(auto writer, TextWriter::Create(result.pieces.back(), CompressionOf(path)));
    writers.push_back(std::move(writer));
  }
  const uint64_t pieces = static_cast<uint64_t>(count);
  const uint64_t longer = total % pieces, size = total / pieces;  // the first `longer` pieces have a line more
  auto piece_of = [&](uint64_t line) -> uint64_t {
    if (split == LineSplit::kRoundRobin) return line % pieces;
    if (line < longer * (size + 1)) return line / (size + 1);
    return size == 0 ? pieces - 1 : longer + (line - longer * (size + 1)) / size;
  };
  auto write = [&](std::string_view line) {
    return writers[std::min(piece_of(result.lines++), pieces - 1)]->Write(line);
  };
  RETURN_IF_ERROR(ForEachLine(path, write));
  for (const auto& writer : writers) RETURN_IF_ERROR(writer->Close());
  return result;
}

}  // namespace regatta::data
