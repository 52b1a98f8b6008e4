// A table has one snapshot at a time: the server's own checkpoint and that of the whole job take turns.
// Thread-safety: all methods are concurrent.
#pragma once

#include <atomic>

namespace regatta::server {

class SnapshotLock {
 public:
  // False if it is taken already.
  bool TryTake() { return !taken_.exchange(true); }
  void Release() { taken_ = false; }

  class Held {
   public:
    explicit Held(SnapshotLock& lock) : lock_(lock), ok_(lock.TryTake()) {}
    ~Held() {
      if (ok_) lock_.Release();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    bool ok() const { return ok_; }

   private:
    SnapshotLock& lock_;
    const bool ok_;
  };

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace regatta::server
