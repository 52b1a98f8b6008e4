// What a server keeps on its disk, so that after a kill it comes back with all that it acknowledged: the job, who takes
// part, where workers have met, and every change of its tables, in a log a lane (docs/format/log.md).
// Thread-safety: Write and Log are concurrent; the rest comes before them.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/roster.h"
#include "table/checkpoint/root_lock.h"
#include "table/log/push_log.h"
#include "wire/ps.pb.h"

namespace regatta::server {

enum class Ack : uint8_t {
  kDefault,  // kLogged where there is a journal
  kMemory,   // a push is applied
  kLogged,   // and written to the log: it survives the end of the process
  kSynced,   // and on the disk: it survives a loss of power
};

class Journal {
 public:
  // Locks `folder` and reads what was written of the job; a job that has ended is forgotten. FAILED_PRECONDITION where
  // another process has it.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  // In their order; the first is the job. Empty: there is none.
  const std::vector<ps::JournalEntry>& entries() const { return entries_; }

  // `fn` for every change that the lane's log holds; afterwards Log may be called for it.
  using ChangeFn = std::function<absl::Status(const Identity& worker, grpc::ByteBuffer& request)>;
  absl::Status OpenLane(int lane, const ChangeFn& fn);
  void SetAck(Ack ack) { ack_ = ack; }

  absl::Status Write(const ps::JournalEntry& entry);
  // Afterwards the request is as safe as the job asks for.
  absl::Status Log(int lane, const Identity& worker, const grpc::ByteBuffer& request);
  // Nobody will come back to the job: what the lanes have logged is given up.
  absl::Status End();
  uint64_t bytes() const;  // of all lanes

 private:
  Journal(const std::string& folder, table::RootLock lock) : folder_(folder), lock_(std::move(lock)) {}
  absl::Status OpenJob();

  const std::string folder_;
  const table::RootLock lock_;
  Ack ack_ = Ack::kLogged;
  std::unique_ptr<table::PushLog> job_;
  std::vector<std::unique_ptr<table::PushLog>> lanes_;
  std::vector<ps::JournalEntry> entries_;
};

}  // namespace regatta::server
