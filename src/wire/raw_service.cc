#include "wire/raw_service.h"

#include <utility>

namespace regatta::wire {

bool LaneStream::Await() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    if (tag == &operation_) return ok;
    Take(tag);
  }
  return false;
}

bool LaneStream::Read(grpc::ByteBuffer* frame) {
  stream_.Read(frame, &operation_);
  if (!Await()) return false;
  if (connection_ == nullptr) return true;
  connection_->Served();
  connection_->Received(frame->Length());
  return true;
}

bool LaneStream::Write(const grpc::ByteBuffer& frame) {
  stream_.Write(frame, &operation_);
  return Await();
}

bool LaneStream::Cancelled() {
  void* tag = nullptr;
  bool ok = false;
  while (!over_came_ && queue_.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME)) == grpc::CompletionQueue::GOT_EVENT)
    Take(tag);
  return over_came_;
}

void LaneStream::Join(int worker, int lanes) {
  joined_ = true;
  EndGreeting();
  if (connection_ != nullptr) connections_->Join(*connection_, worker, lanes);
}

void LaneStream::BeginReading() {
  reading_ = true;
  connections_->BeginRead(*connection_);
}

void LaneStream::EndGreeting() {
  if (std::exchange(greeting_, false)) connection_->Greeted();
}

void LaneStream::Close(const grpc::Status& status, std::chrono::milliseconds timeout) {
  EndGreeting();
  if (std::exchange(reading_, false)) connections_->EndRead(*connection_);
  const auto deadline = std::chrono::system_clock::now() + timeout;
  bool finished = over_came_;
  if (!finished) stream_.Finish(status, &operation_);
  while (!finished || !over_came_) {
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::TIMEOUT) {
      context_.TryCancel();
      if (!queue_.Next(&tag, &ok)) break;
    }
    finished |= tag == &operation_;
    Take(tag);
  }
  Abandon();
}

void LaneStream::Abandon() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

}  // namespace regatta::wire
