// This server's part of a checkpoint of the whole job: its tables as of one moment, which the first worker reads while
// training goes on. A snapshot is dropped if its reader has left the job, or has sent no request for a while: pushes
// would wait for that reader in the end.
// Thread-safety: all methods are concurrent.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/key.h"
#include "base/mutex.h"
#include "base/status.h"
#include "checkpoint/model_snapshot.h"
#include "server/roster.h"
#include "server/snapshot_lock.h"
#include "server/write_gate.h"
#include "wire/lanes.h"

namespace regatta::server {

class HostedSnapshot {
 public:
  static constexpr std::chrono::seconds kReaderTimeout{60};  // between two requests of its reader

  HostedSnapshot(const checkpoint::ModelTables& tables, WriteGate& gate, SnapshotLock& lock)
      : tables_(tables), gate_(gate), lock_(lock) {}
  ~HostedSnapshot() { Release("the server ends"); }

  // Numbers are above 0. A call may be repeated. ABORTED where another snapshot is in progress.
  absl::Status Begin(uint64_t number, const Identity& reader);
  void End(uint64_t number);

  // ABORTED where there is no such snapshot any more.
  // Rows of every shard of the range, a table after the other.
  absl::StatusOr<std::vector<uint64_t>> CountRows(uint64_t number, const wire::Range& shards);
  struct Rows {
    std::vector<base::Key> keys;
    std::vector<float> rows;
  };
  // `most` rows of the shard from the first-th on. The last few shards that were read can be read again.
  absl::StatusOr<Rows> ReadRows(uint64_t number, int table, uint32_t shard, uint64_t first, uint64_t most);
  struct Dense {
    std::vector<float> values;
    uint64_t updates = 0;
  };
  // Array 0 is the values, i + 1 state i.
  absl::StatusOr<Dense> ReadDense(uint64_t number, uint32_t array);

  bool begun() const { return begun_; }
  int reader() const { return reader_; }  // its rank
  // Gives the snapshot up where its reader has left the job, or has said nothing for kReaderTimeout.
  void ReleaseIfAbandoned(bool reader_is_here);

 private:
  struct Shard {
    int table = 0;
    uint32_t shard = 0;
    Rows rows;
  };
  // Holds the turn as long as anybody reads it.
  struct Snapshot {
    explicit Snapshot(SnapshotLock& lock_in) : lock(lock_in) {}
    ~Snapshot() {
      snapshot.reset();
      lock.Release();
    }
    SnapshotLock& lock;
    uint64_t number = 0;
    uint64_t incarnation = 0;  // of its reader
    std::unique_ptr<checkpoint::ModelSnapshot> snapshot;
    checkpoint::SaveContents contents;
    base::Mutex mu;
    std::vector<std::vector<bool>> visited ABSL_GUARDED_BY(mu);           // [table][shard]
    std::deque<std::shared_ptr<const Shard>> recent ABSL_GUARDED_BY(mu);  // the newest last
  };
  absl::StatusOr<std::shared_ptr<Snapshot>> Find(uint64_t number);
  absl::StatusOr<std::shared_ptr<const Shard>> ShardOf(Snapshot& snapshot, int table, uint32_t shard);
  void Release(const char* why);

  const checkpoint::ModelTables tables_;
  WriteGate& gate_;
  SnapshotLock& lock_;
  std::atomic<bool> begun_{false};
  std::atomic<int> reader_{0};
  base::Mutex mu_;
  std::shared_ptr<Snapshot> snapshot_ ABSL_GUARDED_BY(mu_);  // null: there is none
  std::chrono::steady_clock::time_point asked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace regatta::server
