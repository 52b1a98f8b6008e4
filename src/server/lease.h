// The right to a data_dir, which one server has at a time: what it keeps there is in data_dir/term-N, and who comes
// next renames that folder to term-(N+1). From this moment the paths of the one before lead nowhere, whatever it was
// about to do; and what it has written until then, its successor reads. So a change counts where the folder was still
// there after it was logged. The lease tells a successor when it may do so: the holder counts its renewals in
// term-N/OWNER, and one that has not counted for longer than its lease has ended, or sleeps. Thread-safety: Check is
// concurrent.
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
  // Makes the folder where it is missing. One whose holder has ended, on this machine or in order, is taken at once.
  // Otherwise waits, and says so, until the holder has not counted for one and a half of its lease; FAILED_PRECONDITION
  // names one that does count.
  static absl::StatusOr<std::unique_ptr<Lease>> Acquire(const std::string& data_dir, const LeaseOptions& options);
  // Gives it back.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const std::string& data_dir() const { return data_dir_; }
  const std::string& folder() const { return folder_; }  // of this term
  uint64_t term() const { return term_; }

  // OK: all that was written below folder() until now is what a successor finds. UNAVAILABLE for ever where there is
  // one, naming it.
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
