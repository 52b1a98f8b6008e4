// A snapshot of all servers' tables, to be saved while training goes on: begun by the first worker at a moment when
// nobody pushes, read by it afterwards.
// Thread-safety: Begin and the end belong to one thread, the model to one other meanwhile.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "client/grpc_client.h"
#include "client/remote_model.h"

namespace regatta::client {

class RemoteSnapshot {
 public:
  // Numbers are above 0 and new to the servers. An error leaves no server with a snapshot.
  static absl::StatusOr<std::unique_ptr<RemoteSnapshot>> Begin(GrpcClient& client, uint64_t number);
  // Tells the servers that they need not keep it any more.
  ~RemoteSnapshot();
  RemoteSnapshot(const RemoteSnapshot&) = delete;
  RemoteSnapshot& operator=(const RemoteSnapshot&) = delete;

  // ABORTED from a server that has come back since, or has given the snapshot up.
  checkpoint::ModelStore& model() { return model_; }

 private:
  RemoteSnapshot(GrpcClient& client, uint64_t number) : client_(client), number_(number), model_(client, number) {}

  GrpcClient& client_;
  const uint64_t number_;
  RemoteModel model_;
};

}  // namespace regatta::client
