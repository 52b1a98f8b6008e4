// Lets many in, or one alone: changes of tables pass it, and stand still while a snapshot is begun. Whoever closes it
// is not kept waiting by those who come later.
// Thread-safety: all methods are concurrent.
#pragma once

#include "base/mutex.h"

namespace regatta::server {

class WriteGate {
 public:
  void Enter() {
    base::MutexLock lock(mu_);
    while (closed_) changed_.Wait(mu_);
    ++inside_;
  }
  void Leave() {
    base::MutexLock lock(mu_);
    if (--inside_ == 0) changed_.NotifyAll();
  }
  // Returns when nobody is inside; nobody gets in until Open.
  void Close() {
    base::MutexLock lock(mu_);
    while (closed_) changed_.Wait(mu_);
    closed_ = true;
    while (inside_ > 0) changed_.Wait(mu_);
  }
  void Open() {
    base::MutexLock lock(mu_);
    closed_ = false;
    changed_.NotifyAll();
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int inside_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

class WriteGatePass {
 public:
  explicit WriteGatePass(WriteGate& gate) : gate_(gate) { gate_.Enter(); }
  ~WriteGatePass() { gate_.Leave(); }
  WriteGatePass(const WriteGatePass&) = delete;
  WriteGatePass& operator=(const WriteGatePass&) = delete;

 private:
  WriteGate& gate_;
};

class WriteGateClosed {
 public:
  explicit WriteGateClosed(WriteGate& gate) : gate_(gate) { gate_.Close(); }
  ~WriteGateClosed() { gate_.Open(); }
  WriteGateClosed(const WriteGateClosed&) = delete;
  WriteGateClosed& operator=(const WriteGateClosed&) = delete;

 private:
  WriteGate& gate_;
};

}  // namespace regatta::server
