#include "log/push_log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <optional>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/failpoint.h"
#include "base/file.h"

namespace regatta::log {
namespace fs = std::filesystem;
namespace {

constexpr char kSuffix[] = ".log";

uint64_t NewLogId() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string SegmentPath(const LogOptions& options, uint64_t first) {
  return absl::StrFormat("%s/%s-%020d%s", options.folder, options.name, first, kSuffix);
}

// The paths of the log's segments by the index that their names give.
absl::StatusOr<std::vector<std::pair<uint64_t, std::string>>> ListSegments(const LogOptions& options) {
  std::vector<std::pair<uint64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options.folder, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    if (!absl::ConsumePrefix(&number, options.name + "-") || !absl::ConsumeSuffix(&number, kSuffix)) continue;
    uint64_t first = 0;
    if (number.size() == 20 && absl::SimpleAtoi(number, &first)) found.emplace_back(first, entry.path().string());
  }
  if (error) return absl::UnavailableError(absl::StrCat("cannot list ", options.folder, ": ", error.message()));
  std::sort(found.begin(), found.end());
  return found;
}

absl::Status Cut(const std::string& path, uint64_t size) {
  ASSIGN_OR_RETURN(const int fd, base::OpenOwn(path, O_WRONLY));
  const bool done = ftruncate(fd, static_cast<off_t>(size)) == 0 && fsync(fd) == 0;
  const absl::Status failed = base::ErrnoStatus("cannot shorten", path);
  close(fd);
  return done ? absl::OkStatus() : failed;
}

absl::Status SyncFile(const std::string& path) {
  RETURN_IF_ERROR(base::Failpoint("log.fsync"));
  ASSIGN_OR_RETURN(const int fd, base::OpenOwn(path, O_RDONLY));
  const bool done = fdatasync(fd) == 0;
  const absl::Status failed = base::ErrnoStatus("cannot sync", path);
  close(fd);
  return done ? absl::OkStatus() : failed;
}

absl::Status Damage(const std::string& path, std::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the push log is damaged: ", path, ": ", base::View(what),
                   "; restore it from a copy, or start from a checkpoint with an empty data_dir"));
}

absl::Status WriteAll(int fd, const std::string& path, std::vector<iovec> parts) {
  size_t at = 0;
  while (at < parts.size()) {
    if (parts[at].iov_len == 0) {
      ++at;
      continue;
    }
    const ssize_t n = writev(fd, &parts[at], static_cast<int>(std::min<size_t>(parts.size() - at, IOV_MAX)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus("cannot write", path);
    for (auto left = static_cast<size_t>(n); left > 0;) {
      const size_t taken = std::min(left, parts[at].iov_len);
      parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + taken;
      parts[at].iov_len -= taken;
      left -= taken;
      if (parts[at].iov_len == 0) ++at;
    }
  }
  return absl::OkStatus();
}

iovec ToVector(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

}  // namespace

// The end of what was read, and what was promised of it.
struct PushLog::Tail {
  std::string path;      // of the last segment
  uint64_t last = 0;     // whole record
  uint64_t durable = 0;  // that some record knows to be on the disk
  uint64_t size = 0;     // of the whole records' bytes
  std::string problem;   // with what follows them; "" = nothing does
};

absl::StatusOr<std::unique_ptr<PushLog>> PushLog::Open(const LogOptions& options, uint64_t after, const ReadFn& fn) {
  RETURN_IF_ERROR(base::MakeOwnFolder(options.folder));
  const std::string end_path = absl::StrCat(options.folder, "/", options.name, ".end");
  ASSIGN_OR_RETURN(const auto files, ListSegments(options));
  absl::StatusOr<End> end = EndMark::Read(end_path);
  if (absl::IsNotFound(end.status()) && files.empty() && after == 0 && !options.expected)
    end = End{NewLogId(), options.boot, 0};
  if (absl::IsNotFound(end.status())) return Damage(end_path, "it is missing");
  RETURN_IF_ERROR(end.status());
  const bool same_boot = end->boot == options.boot;

  std::vector<Segment> segments;
  Tail tail;
  tail.last = after;
  std::optional<uint64_t> next;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto& [first, path] = files[i];
    const bool last_segment = i + 1 == files.size();
    ASSIGN_OR_RETURN(const std::string bytes, base::ReadOwnFile(path));
    if (last_segment && bytes.size() < SegmentReader::kHeaderBytes && first > (same_boot ? end->index : tail.durable)) {
      RETURN_IF_ERROR(base::RemoveTree(path));  // it was about to begin
      break;
    }
    auto reader = SegmentReader::Open(bytes);
    if (!reader.ok()) return Damage(path, std::string(reader.status().message()));
    if (reader->header().log != end->log) return Damage(path, "it belongs to another log");
    if (reader->header().first != first)
      return Damage(path, absl::StrCat("it begins with record ", reader->header().first));
    if (next.has_value() ? first != *next : first > after + 1 && !options.headless)
      return Damage(path, absl::StrCat("records ", next.value_or(after + 1), " to ", first - 1, " are missing"));
    tail.path = path;
    LogRecord record;
    SegmentReader::Found found;
    while ((found = reader->Next(&record)) == SegmentReader::Found::kRecord) {
      tail.durable = std::max(tail.durable, record.durable);
      if (record.index > after) RETURN_IF_ERROR(fn(record));
    }
    if (found == SegmentReader::Found::kBroken) {
      if (!last_segment) return Damage(path, reader->problem());
      tail.problem = reader->problem();
    }
    next = reader->next_index();
    tail.last = *next - 1;
    tail.size = reader->offset();
    segments.push_back({path, first, tail.size, false});
  }
  // What a kill can leave behind the last record that was counted is one that was being written.
  const uint64_t promised = same_boot ? end->index : tail.durable;
  if (tail.last < promised)
    return Damage(segments.empty() ? end_path : tail.path,
                  absl::StrCat("it was written up to record ", promised, ", of which ", promised - tail.last,
                               " are missing", tail.problem.empty() ? "" : ": ", tail.problem));
  if (tail.last < after) {  // a power cut took what the caller has elsewhere: the numbers go on from there
    for (const Segment& segment : segments) RETURN_IF_ERROR(base::RemoveTree(segment.path));
    segments.clear();
    tail = {};
    tail.last = after;
  }
  if (!tail.problem.empty()) RETURN_IF_ERROR(Cut(tail.path, tail.size));
  ASSIGN_OR_RETURN(EndMark mark, EndMark::Open(end_path, {end->log, options.boot, tail.last}));
  std::unique_ptr<PushLog> log(new PushLog(options, end->log, std::move(mark)));
  base::MutexLock lock(log->mu_);
  log->segments_ = std::move(segments);
  log->last_ = tail.last;
  log->durable_ = tail.durable;
  return log;
}

PushLog::~PushLog() {
  base::MutexLock lock(mu_);
  if (fd_ >= 0) close(fd_);
}

absl::Status PushLog::StartSegmentLocked() {
  RETURN_IF_ERROR(base::Failpoint("log.segment"));
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  // One that holds nothing begins with the same record: it is written anew.
  if (!segments_.empty() && segments_.back().first == last_ + 1) segments_.pop_back();
  Segment segment{SegmentPath(options_, last_ + 1), last_ + 1, SegmentReader::kHeaderBytes, false};
  ASSIGN_OR_RETURN(const int fd, base::CreateOwn(segment.path, 0600));
  const std::string header = FormatSegmentHeader({log_, segment.first});
  absl::Status status = WriteAll(fd, segment.path, {ToVector(header)});
  if (status.ok()) status = base::SyncFolder(options_.folder);
  if (!status.ok()) {
    close(fd);
    unlink(segment.path.c_str());
    return status;
  }
  fd_ = fd;
  segments_.push_back(std::move(segment));
  return absl::OkStatus();
}

absl::Status PushLog::WriteLocked(std::span<const std::string_view> parts) {
  uint64_t body = 0;
  for (const std::string_view part : parts) body += part.size();
  if (body > kMaxRecordBytes)
    return absl::InvalidArgumentError(absl::StrCat("a record of ", body, " bytes; the limit is ", kMaxRecordBytes));
  if (fd_ < 0 || segments_.back().bytes >= options_.segment_bytes) RETURN_IF_ERROR(StartSegmentLocked());
  const std::string header = FormatRecordHeader(last_ + 1, durable_, parts);
  constexpr char kZeros[8] = {};
  std::vector<iovec> vectors{ToVector(header)};
  for (const std::string_view part : parts) vectors.push_back(ToVector(part));
  vectors.push_back(ToVector({kZeros, RecordPadding(body)}));
  Segment& segment = segments_.back();
  absl::Status status = base::Failpoint("log.write");
  if (status.ok()) status = WriteAll(fd_, segment.path, std::move(vectors));
  if (status.ok()) {
    segment.bytes += header.size() + body + RecordPadding(body);
    segment.synced = false;
    return absl::OkStatus();
  }
  const auto size = static_cast<off_t>(segment.bytes);
  if (ftruncate(fd_, size) != 0 || lseek(fd_, size, SEEK_SET) != size)
    failure_ = base::Annotate(base::ErrnoStatus("cannot shorten", segment.path), std::string(status.message()));
  return status;
}

absl::StatusOr<uint64_t> PushLog::Append(std::span<const std::string_view> parts) {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(WriteLocked(parts));
  end_.Set(++last_);
  return last_;
}

absl::Status PushLog::Sync(uint64_t index) {
  base::MutexLock lock(mu_);
  while (durable_ < index) {
    RETURN_IF_ERROR(failure_);
    if (syncing_) {
      synced_.Wait(mu_);
      continue;
    }
    syncing_ = true;
    const uint64_t target = last_;
    std::vector<std::string> paths;
    for (const Segment& segment : segments_)
      if (!segment.synced) paths.push_back(segment.path);
    mu_.unlock();
    absl::Status status;
    for (const std::string& path : paths)
      if (status.ok()) status = SyncFile(path);
    mu_.lock();
    syncing_ = false;
    // What the disk has lost once it will not be told again: no later fsync may claim it.
    if (!status.ok()) failure_ = status;
    if (status.ok()) durable_ = std::max(durable_, target);
    // The last one may have got more records since.
    for (Segment& segment : segments_)
      if (status.ok() && !paths.empty() && std::find(paths.begin(), paths.end() - 1, segment.path) != paths.end() - 1)
        segment.synced = true;
    synced_.NotifyAll();
  }
  return absl::OkStatus();
}

absl::Status PushLog::BeginSegment() {
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  if (fd_ < 0 || segments_.back().first > last_) return absl::OkStatus();
  return StartSegmentLocked();
}

absl::Status PushLog::DropThrough(uint64_t index) {
  base::MutexLock lock(mu_);
  while (syncing_) synced_.Wait(mu_);  // it reads the files
  index = std::min(index, last_);
  if (!segments_.empty() && index == last_ && segments_.back().first <= last_) RETURN_IF_ERROR(StartSegmentLocked());
  while (segments_.size() > 1 && segments_[1].first <= index + 1) {
    RETURN_IF_ERROR(base::Failpoint("log.drop"));
    if (unlink(segments_.front().path.c_str()) != 0 && errno != ENOENT)
      return base::ErrnoStatus("cannot remove", segments_.front().path);
    segments_.erase(segments_.begin());
  }
  return absl::OkStatus();
}

uint64_t PushLog::last_index() const {
  base::MutexLock lock(mu_);
  return last_;
}

uint64_t PushLog::bytes() const {
  base::MutexLock lock(mu_);
  uint64_t bytes = 0;
  for (const Segment& segment : segments_) bytes += segment.bytes;
  return bytes;
}

}  // namespace regatta::log
