// Any bytes as requests of two workers, down several lanes, in every mode: answered, never believed. An input is a byte
// that draws the mode, then requests: a byte for rank and lane, two for the length, the frame.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "server/lane_session.h"
#include "server/testing/small_job.h"
#include "wire/frame_seal.h"

namespace {

using namespace regatta;

constexpr std::array kModes = {base::Mode::kAsync, base::Mode::kSync, base::Mode::kGeo};
constexpr int kWorkers = 2, kTables = 2, kSparseLanes = 2;

std::unique_ptr<server::HostedJob> NewJob(base::Mode mode) {
  auto job = server::SmallJob(mode, kWorkers, kTables, kSparseLanes);
  for (int rank = 1; rank < kWorkers; ++rank)
    CHECK(job->roster().Join({rank, server::kFirstWorker.incarnation, "here"}).ok());
  return job;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::array<std::unique_ptr<server::HostedJob>, kModes.size()> jobs;
  if (size < 1) return 0;
  std::unique_ptr<server::HostedJob>& job = jobs[data[0] % kModes.size()];
  if (job == nullptr || job->rows() > 10'000) job = NewJob(kModes[data[0] % kModes.size()]);
  std::map<std::pair<int, int>, std::unique_ptr<server::LaneSession>> sessions;
  for (size_t at = 1; at + 3 <= size;) {
    const int rank = data[at] % kWorkers, lane = data[at] / kWorkers % (kSparseLanes + 1);
    const size_t length = std::min<size_t>(size - at - 3, data[at + 1] | data[at + 2] << 8);
    const grpc::Slice slice(data + at + 3, length);
    at += 3 + length;
    grpc::ByteBuffer request(&slice, 1);
    wire::FrameSeal().Check(request).IgnoreError();
    auto& session = sessions[{rank, lane}];
    // Nobody waits for a step that does not come.
    if (session == nullptr)
      session =
          std::make_unique<server::LaneSession>(*job, server::Identity{rank, server::kFirstWorker.incarnation, "here"},
                                                lane, server::AccessLevel::kAdmin, [] { return true; });
    session->Answer(request);
  }
  return 0;
}
