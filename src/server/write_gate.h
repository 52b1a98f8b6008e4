// A reader-writer lock that prefers the writer. Changes of tables enter as readers. The start of a snapshot closes the
// gate: it waits for the changes inside, and later ones wait for it.
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
  // Returns when no thread is inside. No thread gets in until Open.
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
