// Requests in flight that are awaited together. The same Call may be used again after Wait.
// Thread-safety: Expect and Wait belong to one thread; Done may come from any.
#pragma once

#include "base/mutex.h"
#include "base/status.h"

namespace regatta::client {

class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { Wait().IgnoreError(); }  // replies write to memory that the call's owner lends

  // So many more replies will come; before their requests are sent.
  void Expect(int replies) {
    base::MutexLock lock(mu_);
    waiting_ += replies;
  }
  void Done(const absl::Status& status) {
    base::MutexLock lock(mu_);
    if (!status.ok() && status_.ok()) status_ = status;
    if (--waiting_ == 0) changed_.NotifyAll();
  }
  // The first error since the last Wait.
  absl::Status Wait() {
    base::MutexLock lock(mu_);
    while (waiting_ > 0) changed_.Wait(mu_);
    return std::exchange(status_, absl::OkStatus());
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::client
