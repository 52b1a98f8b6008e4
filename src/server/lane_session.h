// Serves one lane of one worker: reads requests, does what they ask, answers in their order. Nothing in a frame is
// believed before it is checked against the job; a bad request is answered with an error and the lane goes on.
// Thread-safety: belongs to one thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/raw_vector.h"
#include "base/status.h"
#include "server/hosted_job.h"
#include "server/model_reader.h"
#include "server/open_push.h"
#include "server/roster.h"
#include "server/section_reader.h"
#include "server/token_guard.h"
#include "wire/frame.h"
#include "wire/lanes.h"

namespace regatta::server {

class LaneSession {
 public:
  using Cancelled = std::function<bool()>;  // asked while it waits: nobody will read the answer
  // `lane` is below spec().lanes.lanes(); the last one is the dense lane.
  LaneSession(
      HostedJob& job, const Identity& worker, int lane, AccessLevel access = AccessLevel::kAdmin,
      Cancelled cancelled = [] { return false; });
  ~LaneSession();
  LaneSession(const LaneSession&) = delete;
  LaneSession& operator=(const LaneSession&) = delete;

  const Identity& worker() const { return worker_; }
  // Whether a request was refused because a newer stream of the lane has taken over: this one is of no use any more.
  bool superseded() const { return superseded_; }
  // The reply to a request. One that changes tables and has been done before is answered as done.
  grpc::ByteBuffer Answer(grpc::ByteBuffer& request);
  // A change that record `index` of the lane's log holds.
  absl::Status Repeat(grpc::ByteBuffer& request, uint64_t index);

 private:
  using Reply = absl::StatusOr<grpc::ByteBuffer>;
  Reply Dispatch(wire::FrameReader& frame);
  Reply Change(wire::FrameReader& frame);
  Reply ChangeOnce(wire::FrameReader& frame, WorkerLane& worker_lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(worker_lane.mu);
  Reply DispatchChange(wire::FrameReader& frame);
  absl::StatusOr<uint64_t> Log();
  RequestOrigin origin() const { return repeated_ == 0 ? RequestOrigin::kWorker : RequestOrigin::kLog; }
  absl::Status LogFrame();
  StageRequest ToStage();
  Reply Pull(wire::FrameReader& frame);
  Reply Push(wire::FrameReader& frame);
  absl::Status Append(wire::FrameReader& frame);
  Reply Add(wire::FrameReader& frame);
  Reply PullDense(wire::FrameReader& frame);
  Reply PushDense(wire::FrameReader& frame);
  Reply AddDense(wire::FrameReader& frame);
  absl::Status AddPart(const ps::FrameHeader& header, const GeoRounds::Step& apply);
  Reply Begin(wire::FrameReader& frame);
  Reply Leave(wire::FrameReader& frame);
  Reply LoadRows(wire::FrameReader& frame);
  Reply Clear(wire::FrameReader& frame);
  Reply LoadDense(wire::FrameReader& frame);
  Reply BeginSnapshot(wire::FrameReader& frame);
  Reply EndSnapshot(wire::FrameReader& frame);

  absl::Status CheckBatches(const ps::FrameHeader& header) const;
  absl::Status CheckFinite();
  absl::Status CheckAdds(const ps::FrameHeader& header) const;
  absl::Status ApplyPart();
  absl::Status AwaitNothing();
  void ForgetRounds();
  absl::Status AwaitTurn(const ps::FrameHeader& header);
  absl::StatusOr<std::shared_ptr<const StepImage>> Before(const ps::FrameHeader& header);
  bool Holds(const ps::FrameHeader& header) const;
  void NotePull(const ps::FrameHeader& header);
  uint64_t NoteUpdate(const ps::FrameHeader& header);

  HostedJob& job_;
  const Identity worker_;
  const int lane_;
  const uint64_t stream_;  // its number among the lane's streams of this worker
  const AccessLevel access_;
  const Cancelled cancelled_;
  const wire::Range shards_;  // of a sparse lane
  const SectionReader sections_;
  OpenPush push_;  // used under the lock of the worker's lane
  const ModelReader reader_;
  std::vector<base::RawVector<base::Key>> keys_;  // a table each, reused
  base::RawVector<float> rows_;                   // on their way to 16 bits, reused
  const grpc::ByteBuffer* request_ = nullptr;     // the one that is being answered
  uint64_t repeated_ = 0;                         // the log's record of it; 0 = it comes from the worker
  bool superseded_ = false;
  bool logged_ = false;  // it is in the log, whatever the answer will be

  // When steps were pulled, in updates of the lane; step s stands at s % kPulled. A worker has fewer under way.
  static constexpr size_t kPulled = 64;
  struct Pulled {
    uint64_t step = ~uint64_t{0};
    uint64_t updates = 0;
  };
  std::array<Pulled, kPulled> pulled_;
  uint64_t pulls_ = 0;
};

}  // namespace regatta::server
