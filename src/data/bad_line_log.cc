#include "data/bad_line_log.h"

#include <glog/logging.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "base/printable.h"

namespace regatta::data {
namespace {

constexpr int kShownReasons = 3;

}  // namespace

BadLineLog::BadLineLog(const DatasetOptions& options)
    : files_(options.files),
      pipe_command_(options.pipe_command),
      max_bad_lines_(options.max_bad_lines),
      quarantine_path_(options.quarantine_path),
      quarantine_named_(options.quarantine_named),
      quarantine_max_bytes_(options.quarantine_max_bytes) {}

absl::Status BadLineLog::Count(const SampleBlock& block) {
  lines_ += block.lines;
  if (block.bad_lines == 0) return absl::OkStatus();
  bad_lines_ += block.bad_lines;
  const std::string& file = files_[static_cast<size_t>(block.file)];
  const std::string through = pipe_command_.empty() ? "" : absl::StrCat(" | ", pipe_command_);
  for (const BadLine& bad : block.bad) {
    const std::string reason =
        absl::StrCat(file, through, ":", block.first_line + bad.line, ": ", base::Printable(bad.reason));
    if (reasons_ < kShownReasons) {
      absl::StrAppend(&first_reasons_, "\n  ", reason);
      LOG(WARNING) << "bad line skipped: " << reason;
      ++reasons_;
    }
    Keep(absl::StrCat(reason, "\t", absl::CHexEscape(bad.text), "\n"));
  }
  if (quarantine_ != nullptr && !quarantine_->Flush().ok()) quarantine_full_ = true;
  const uint64_t allowed = max_bad_lines_.value_or(std::max<uint64_t>(100, lines_ / 100));
  if (bad_lines_ <= allowed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      bad_lines_, " of ", lines_, " lines are bad, more than the ", allowed,
      max_bad_lines_.has_value() ? "" : " (1%, at least 100)", " that max_bad_lines allows; the first are:",
      first_reasons_, quarantine_path_.empty() ? "" : absl::StrCat("\nmore of them: ", quarantine_path_)));
}

absl::Status BadLineLog::NoGoodSample() const {
  if (files_.empty()) return absl::InvalidArgumentError("no good sample: there are no data files");
  const std::string where = files_.size() == 1 ? files_[0] : absl::StrCat(files_.size(), " files, ", files_[0], " …");
  if (lines_ == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("no good sample: ", where, files_.size() == 1 ? " holds no line" : " hold no line"));
  if (bad_lines_ == 0)
    return absl::InvalidArgumentError(absl::StrCat("no good sample: the ", lines_, " lines of ", where, " are blank"));
  return absl::InvalidArgumentError(
      absl::StrCat("no good sample in ", lines_, " lines of ", where, "; the first reasons:", first_reasons_));
}

// A full disk must not end a training for the sake of its bad lines.
void BadLineLog::Keep(const std::string& line) {
  if (quarantine_path_.empty() || quarantine_full_) return;
  absl::Status status;
  if (quarantine_ == nullptr) {
    const std::string folder = std::filesystem::path(quarantine_path_).parent_path().string();
    if (!folder.empty()) status = base::MakeFolders(folder);
    auto file = base::AppendFile::Create(quarantine_path_, quarantine_named_);
    if (status.ok()) status = file.status();
    if (file.ok()) quarantine_ = std::move(*file);
  }
  if (status.ok() && quarantine_->size() + line.size() > quarantine_max_bytes_) {
    status = absl::OutOfRangeError(absl::StrCat("it has reached ", quarantine_max_bytes_, " bytes"));
  }
  if (status.ok()) status = quarantine_->Append(line);
  if (status.ok()) return;
  quarantine_full_ = true;
  LOG(WARNING) << "bad lines are no longer kept in " << quarantine_path_ << ": " << status.message();
}

}  // namespace regatta::data
