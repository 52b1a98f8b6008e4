#include "client/remote_snapshot.h"

#include <glog/logging.h>

namespace regatta::client {
namespace {

absl::Status SendAll(GrpcClient& client, ps::Verb verb, uint64_t number) {
  Call call;
  for (int server = 0; server < client.servers(); ++server) {
    ps::FrameHeader header;
    header.set_verb(verb);
    header.set_cut(number);
    call.Expect(1);
    client.lane(server, client.lanes().dense_lane())
        .Send(
            header, 0, [](wire::FrameWriter&) {}, nullptr, call);
  }
  return call.Wait();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteSnapshot>> RemoteSnapshot::Begin(GrpcClient& client, uint64_t number) {
  std::unique_ptr<RemoteSnapshot> snapshot(new RemoteSnapshot(client, number));
  RETURN_IF_ERROR(SendAll(client, ps::BEGIN_CUT, number));
  return snapshot;
}

RemoteSnapshot::~RemoteSnapshot() {
  if (const absl::Status ended = SendAll(client_, ps::END_CUT, number_); !ended.ok())
    LOG(WARNING) << "the end of a snapshot: " << ended.message();
}

}  // namespace regatta::client
