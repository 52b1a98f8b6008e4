// Any bytes as requests of a lane: answered, never believed.
#include <cstddef>
#include <cstdint>

#include "server/lane_session.h"
#include "server/testing/small_job.h"
#include "wire/frame_seal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  static const std::unique_ptr<server::HostedJob> job = server::SmallJob(server::Mode::kAsync, 1, 2);
  if (size < 1) return 0;
  server::LaneSession session(*job, server::kFirstWorker, data[0] & 1);
  // Two requests over one session, cut where the second byte says.
  const size_t cut = size > 2 ? 2 + data[1] % (size - 1) : size;
  for (const auto& [begin, end] :
       {std::pair{std::min<size_t>(2, size), std::min(cut, size)}, {std::min(cut, size), size}}) {
    const grpc::Slice slice(data + begin, end - begin);
    grpc::ByteBuffer request(&slice, 1);
    wire::FrameSeal().Check(request).IgnoreError();
    session.Answer(request);
  }
  if (job->rows() > 10'000)
    for (int table = 0; table < job->sparse_tables(); ++table) job->sparse(table).Clear();
  return 0;
}
