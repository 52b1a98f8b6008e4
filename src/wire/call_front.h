// Takes a server's calls from gRPC and brings each to its verb. A call gets a thread when it has been admitted and its
// request is here, not before: one thread looks at all of them, and waits for none. Verbs that wait for others
// (Connect, Gather), lanes, and verbs that do not wait have threads of their own each, so that none takes another's.
// gRPC's own threads are not used: its synchronous server gives every call a thread before anybody has looked at it.
// Thread-safety: Register, Start and Stop belong to the owner.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "wire/call_threads.h"
#include "wire/connections.h"
#include "wire/lane_method.h"
#include "wire/raw_service.h"

namespace regatta::wire {

struct FrontLimits {
  // Whether a call that is admitted shows that the peer is a worker: it has a token.
  bool tokens = false;
  size_t lanes = 32'768;                     // threads
  size_t gathers = 4'096;                    // threads: all-gather calls that wait
  size_t connects = 16;                      // threads
  size_t queued = 1'024;                     // calls of a kind that wait for a thread; lanes and all-gathers do not
  size_t unread = 512;                       // calls whose request is not here yet; over it the oldest is cancelled
  std::chrono::seconds request_timeout{10};  // of such a call
};

class CallFront {
 public:
  // Both outlive it.
  CallFront(RawService& service, Connections& connections, const FrontLimits& limits);
  ~CallFront();

  // Before the server is built.
  void Register(grpc::ServerBuilder& builder);
  // After.
  void Start();
  // Whether more calls have come than it could look at so far. Concurrent.
  bool Busy() const;
  // After the server has been told to shut down.
  void Stop();

 private:
  // Something that happens to a call, in the front's thread. `ok` is gRPC's.
  struct Event {
    virtual void Happen(bool ok) = 0;

   protected:
    ~Event() = default;
  };
  struct Verb;
  class ControlCall;
  class LaneSlot;

  void Loop();
  // Another call, or lane, of each can come.
  void AwaitCall();
  void AwaitLane();
  void Serve(std::unique_ptr<LaneStream> lane);
  void Refuse(std::unique_ptr<LaneStream> lane, grpc::Status status);
  void CancelSlow();
  std::shared_ptr<Connection> ConnectionOf(const grpc::ServerContext& context) const;
  void Strike(const std::shared_ptr<Connection>& connection);

  RawService& service_;
  Connections& connections_;
  const FrontLimits limits_;
  grpc::AsyncGenericService generic_;
  LaneMethod lane_method_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::thread loop_;
  std::atomic<bool> waits_{false};  // the loop: for something to happen
  std::atomic<std::chrono::steady_clock::time_point> drained_{std::chrono::steady_clock::now()};  // when it last did
  CallThreads lane_threads_;
  CallThreads gather_threads_;
  CallThreads connect_threads_;
  CallThreads member_threads_;  // Heartbeat, Goodbye
  CallThreads status_threads_;
  CallThreads refusals_;  // of lanes: their ends are awaited

  // Of the front's thread.
  std::list<ControlCall*> unread_;  // the oldest first

  base::Mutex mu_;
  base::CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;  // that use queue_, those that are awaited too
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace regatta::wire
