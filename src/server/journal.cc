#include "server/journal.h"

#include <glog/logging.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/failpoint.h"
#include "base/file.h"
#include "server/local_saves.h"

namespace regatta::server {
namespace {

struct ChangeHeader {
  uint32_t rank = 0;
  uint32_t zero = 0;
  uint64_t incarnation = 0;
};
static_assert(sizeof(ChangeHeader) == 16);

std::string LogFolder(const std::string& folder) { return folder + "/log"; }

absl::Status AsDamage(const std::string& what) {
  return absl::DataLossError(
      absl::StrCat("the log holds a record that is no ", what, "; was it written by another version of Regatta?"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& data_dir, const LeaseOptions& options,
                                                       double since) {
  ASSIGN_OR_RETURN(auto lease, Lease::Acquire(data_dir, options));
  const std::string folder = lease->folder();
  std::unique_ptr<Journal> journal(new Journal(std::move(lease)));
  RETURN_IF_ERROR(journal->OpenJob());
  if (journal->ended() && journal->entries_.back().ended_at() < since) {
    LOG(INFO) << data_dir << " holds a job that has ended; it begins anew";
    journal->job_.reset();
    journal->entries_.clear();
    RETURN_IF_ERROR(LocalSaves(folder).RemoveAll());
    // Put aside in one step: lanes that outlived their job's log would be done again for the next job.
    const std::string aside = LogFolder(folder) + ".ended";
    RETURN_IF_ERROR(base::RemoveTree(aside));
    RETURN_IF_ERROR(base::RenameDurably(LogFolder(folder), aside));
    RETURN_IF_ERROR(base::Failpoint("log.forget"));
    RETURN_IF_ERROR(base::RemoveTree(aside));
    RETURN_IF_ERROR(journal->OpenJob());
  }
  return journal;
}

absl::Status Journal::OpenJob() {
  log::LogOptions options;
  options.folder = LogFolder(folder());
  options.name = "job";
  options.headless = true;
  uint64_t next = 0, begin = 1;  // the index behind the last, and the one from which all is told
  ASSIGN_OR_RETURN(job_, log::PushLog::Open(options, 0, [&](const log::LogRecord& record) -> absl::Status {
                     ps::JournalEntry entry;
                     if (!entry.ParseFromArray(record.body.data(), static_cast<int>(record.body.size())))
                       return AsDamage("entry of a journal");
                     next = record.index + 1;
                     if (entry.retold() != 0) begin = entry.retold();
                     entries_.push_back(std::move(entry));
                     return absl::OkStatus();
                   }));
  if (!entries_.empty()) {
    const uint64_t first = next - entries_.size();
    if (begin < first || begin >= next)
      return absl::DataLossError(absl::StrCat(options.folder, ": records ", begin, " to ", first - 1,
                                              " of the job's log are missing; restore it from a copy, or start from a "
                                              "checkpoint with an empty data_dir"));
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(begin - first));
    if (!entries_.front().has_job()) return AsDamage("job, where one begins");
  }
  if (entries_.empty() && base::Exists(options.folder + "/lane0.end"))
    return absl::DataLossError(
        absl::StrCat(options.folder,
                     " has logs of lanes, and none of the job that they belong to; restore it from a "
                     "copy, or start from a checkpoint with an empty data_dir"));
  begin_.Clear();
  if (!entries_.empty()) *begin_.mutable_job() = entries_.front().job();
  for (const ps::JournalEntry& entry : entries_) begin_.set_lanes(std::max(begin_.lanes(), entry.lanes()));
  return absl::OkStatus();
}

absl::Status Journal::KeepLanes(int lanes) {
  if (static_cast<uint32_t>(lanes) <= begin_.lanes()) return absl::OkStatus();
  begin_.set_lanes(static_cast<uint32_t>(lanes));
  ps::JournalEntry entry;
  entry.set_lanes(begin_.lanes());
  return Write(entry);
}

absl::Status Journal::OpenLane(int lane, uint64_t after, const ChangeFn& fn) {
  log::LogOptions options;
  options.folder = LogFolder(folder());
  options.name = absl::StrCat("lane", lane);
  options.expected = static_cast<uint32_t>(lane) < begin_.lanes();
  options.segment_bytes = segment_bytes_;
  if (lanes_.size() <= static_cast<size_t>(lane)) lanes_.resize(static_cast<size_t>(lane) + 1);
  ASSIGN_OR_RETURN(lanes_[static_cast<size_t>(lane)],
                   log::PushLog::Open(options, after, [&fn](const log::LogRecord& record) -> absl::Status {
                     ChangeHeader header;
                     if (record.body.size() < sizeof header) return AsDamage("change of a table");
                     std::memcpy(&header, record.body.data(), sizeof header);
                     const std::string_view frame = record.body.substr(sizeof header);
                     const grpc::Slice slice(frame.data(), frame.size());
                     grpc::ByteBuffer request(&slice, 1);
                     return fn({static_cast<int>(header.rank), header.incarnation, ""}, record.index, request);
                   }));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Journal::Append(const ps::JournalEntry& entry) {
  const std::string bytes = entry.SerializeAsString();
  const std::string_view body(bytes);
  return job_->Append({&body, 1});
}

absl::Status Journal::Write(const ps::JournalEntry& entry) {
  if (entry.has_job()) *begin_.mutable_job() = entry.job();  // the first of all, before there is anybody else to write
  ASSIGN_OR_RETURN(const uint64_t index, Append(entry));
  if (ack_ == base::Ack::kSynced) RETURN_IF_ERROR(job_->Sync(index));
  RETURN_IF_ERROR(base::Failpoint("journal.written"));
  return Held();
}

// The last record says that all of them are there; without it they repeat what is known, and change nothing.
absl::StatusOr<uint64_t> Journal::CompactJobLog(std::span<const ps::JournalEntry> known) {
  RETURN_IF_ERROR(job_->BeginSegment());
  const uint64_t before = job_->bytes();
  ASSIGN_OR_RETURN(const uint64_t first, Append(begin_));
  for (const ps::JournalEntry& entry : known) RETURN_IF_ERROR(Append(entry).status());
  RETURN_IF_ERROR(base::Failpoint("journal.compact"));
  ps::JournalEntry end;
  end.set_retold(first);
  RETURN_IF_ERROR(Append(end).status());
  RETURN_IF_ERROR(base::Failpoint("journal.compacted"));
  compacted_ = first;
  RETURN_IF_ERROR(Held());
  return job_->bytes() - before;
}

absl::Status Journal::DropBeforeCompaction() {
  RETURN_IF_ERROR(job_->Sync(job_->last_index()));
  RETURN_IF_ERROR(base::Failpoint("journal.synced"));
  RETURN_IF_ERROR(Held());
  RETURN_IF_ERROR(job_->DropThrough(compacted_ - 1));
  return base::Failpoint("journal.dropped");
}

absl::StatusOr<uint64_t> Journal::Log(int lane, const Identity& worker, const grpc::ByteBuffer& request) {
  const ChangeHeader header{static_cast<uint32_t>(worker.rank), 0, worker.incarnation};
  std::vector<grpc::Slice> slices;
  if (!request.Dump(&slices).ok()) return absl::InternalError("a request cannot be read twice");
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&header), sizeof header}};
  for (const grpc::Slice& slice : slices)
    parts.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  log::PushLog& log = *lanes_[static_cast<size_t>(lane)];
  ASSIGN_OR_RETURN(const uint64_t index, log.Append(parts));
  logged_.Add(request.Length());
  if (ack_ == base::Ack::kSynced) RETURN_IF_ERROR(log.Sync(index));
  RETURN_IF_ERROR(Held());
  return index;
}

absl::Status Journal::End() {
  ps::JournalEntry entry;
  entry.set_ended(true);
  entry.set_ended_at(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  RETURN_IF_ERROR(Write(entry));
  for (const auto& lane : lanes_)
    if (lane != nullptr) RETURN_IF_ERROR(lane->DropThrough(lane->last_index()));
  return LocalSaves(folder()).RemoveAll();
}

uint64_t Journal::bytes() const {
  uint64_t bytes = 0;
  for (const auto& lane : lanes_)
    if (lane != nullptr) bytes += lane->bytes();
  return bytes;
}

}  // namespace regatta::server
