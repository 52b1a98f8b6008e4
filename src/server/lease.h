// The right to a data_dir, which one server has at a time. The holder keeps its files in data_dir/term-N. Its successor
// renames that folder to term-(N+1). From then on the paths of the predecessor do not exist, so it cannot write there;
// what it wrote before, the successor reads. A change therefore counts only if the folder was still there after the
// change was logged. The lease says when a successor may take over: the holder increments a counter in term-N/OWNER. If
// the counter stands still for longer than the lease, the holder has ended or sleeps.
// Thread-safety: Check is concurrent.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::server {

struct LeaseOptions {
  std::chrono::duration<double> length{10};
};

class Lease {
 public:
  // Makes the folder if it is missing. Takes it at once if its holder has ended on this machine, or has given it back.
  // Otherwise waits, with a log line, until the holder's counter has stood still for 1.5 times its lease.
  // FAILED_PRECONDITION names a holder whose counter moves.
  static absl::StatusOr<std::unique_ptr<Lease>> Acquire(const std::string& data_dir, const LeaseOptions& options);
  // Gives it back.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::string& data_dir() const { return data_dir_; }
  const std::string& folder() const { return folder_; }  // of this term
  uint64_t term() const { return term_; }

  // OK: a successor will find all that was written below folder() until now. UNAVAILABLE, for good, if there is a
  // successor, which it names.
  absl::Status Check();

 private:
  Lease(const std::string& data_dir, uint64_t term, const LeaseOptions& options);
  absl::Status TakeOffice();
  bool Stands() const;  // the folder, under this term's name
  absl::Status RenewLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status VerifyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run();

  const std::string data_dir_;
  const uint64_t term_;
  const LeaseOptions options_;
  const std::string folder_;
  const std::string path_;  // of its OWNER

  // Constant after TakeOffice.
  int fd_ = -1;  // of OWNER, locked
  dev_t device_ = 0;
  ino_t inode_ = 0;

  std::atomic<int64_t> valid_until_{0};  // nanoseconds since the machine's start; 0 = lost
  base::Mutex mu_;
  base::CondVar changed_;
  uint64_t renewals_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace regatta::server
