#include "data/dataset_factory.h"

#include <glog/logging.h>

#include <algorithm>

#include "data/in_memory_dataset.h"
#include "data/parser/format.h"
#include "data/queue_dataset.h"
#include "data/source/child_process.h"
#include "data/source/line_source.h"

namespace regatta::data {
namespace {

constexpr size_t kDetectBytes = 64 << 10;
constexpr int kDetectLines = 32;
constexpr int kMostSamples = 1 << 20;  // of a batch

std::string_view FirstLines(std::string_view text) {
  size_t at = 0;
  for (int i = 0; i < kDetectLines && at < text.size(); ++i) at = std::min(text.find('\n', at), text.size() - 1) + 1;
  return text.substr(0, at);
}

// Looks at the first file that holds a line.
absl::StatusOr<const FormatEntry*> DetectFromFiles(const DatasetOptions& options) {
  LineSource lines(kDetectBytes, options.max_line_bytes);
  for (const std::string& path : options.files) {
    ASSIGN_OR_RETURN(auto bytes, OpenFile(path));
    lines.Open(std::move(bytes));
    LineBlock block;
    ASSIGN_OR_RETURN(const bool more, lines.Next(&block));
    if (!more || block.text.empty()) continue;
    auto format = DetectFormat(FirstLines(block.text), options.schema);
    if (!format.ok()) return base::Annotate(format.status(), path);
    LOG(INFO) << path << ": detected the format " << (*format)->name << " (" << (*format)->reader << ")";
    return *format;
  }
  // Nothing to read: the pass will say so.
  return &kFormats[0];
}

absl::StatusOr<const FormatEntry*> ChooseFormat(const DatasetOptions& options) {
  if (!options.pipe_command.empty()) return FindFormat("multislot");
  if (const FormatEntry* format = FindFormat(options.format)) return format;
  return DetectFromFiles(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> MakeDataset(const DatasetOptions& options) {
  if (options.batch_size < 1 || options.batch_size > kMostSamples)
    return absl::InvalidArgumentError(
        absl::StrCat("batch_size: ", options.batch_size, "; a batch holds 1 to ", kMostSamples, " samples"));
  if (options.readers < 1) return absl::InvalidArgumentError("a dataset needs at least one reader");
  if (options.block_bytes < 1 || options.piece_bytes < 1 || options.max_line_bytes < 1)
    return absl::InvalidArgumentError("block_bytes, piece_bytes and max_line_bytes must be above 0");
  if (options.files.empty()) return absl::InvalidArgumentError("there are no data files");
  if (options.kind == DatasetKind::kQueue && options.shuffle != Shuffle::kNone)
    return absl::InvalidArgumentError("only an InMemoryDataset can be shuffled: set runner.reader_type to it");
  if (!options.pipe_command.empty() && options.pipe_shell == PipeShell::kNo)
    RETURN_IF_ERROR(SplitWords(options.pipe_command).status());
  ASSIGN_OR_RETURN(const FormatEntry* format, ChooseFormat(options));
  // A schema that the format cannot serve is an error now, not in a reader.
  RETURN_IF_ERROR(format->make(options.schema).status());
  if (options.kind == DatasetKind::kInMemory) return std::make_unique<InMemoryDataset>(options, *format);
  return std::make_unique<QueueDataset>(options, *format);
}

}  // namespace regatta::data
