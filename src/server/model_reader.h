// Answers who reads the model that a server holds, for a save: rows by virtual shard and dense arrays, of a snapshot
// where the request names one, otherwise as they are, and then nothing may change meanwhile.
// Thread-safety: belongs to one thread.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "base/status.h"
#include "server/hosted_job.h"
#include "wire/lanes.h"
#include "wire/ps.pb.h"

namespace regatta::server {

class ModelReader {
 public:
  using Reply = absl::StatusOr<grpc::ByteBuffer>;
  // `shards` are the lane's.
  ModelReader(HostedJob& job, wire::Range shards) : job_(job), shards_(shards) {}

  // Of every shard, a table after the other.
  Reply CountRows(const ps::FrameHeader& header) const;
  // Rows [step, step + count) of the shard, in the order of the walk.
  Reply ReadRows(const ps::FrameHeader& header) const;
  // Array 0 is the values, i + 1 state i.
  Reply ReadDense(const ps::FrameHeader& header) const;
  // Whether the request names a table, and a shard of the lane.
  absl::Status CheckShard(const ps::FrameHeader& header) const;

 private:
  HostedJob& job_;
  const wire::Range shards_;
};

}  // namespace regatta::server
