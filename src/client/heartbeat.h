// Tells every server, on a thread of its own, that the worker lives, how far it is, and whether it was asked to stop.
// The answers bring whether anybody was, and the first worker gets everybody's progress. Thread-safety: all methods are
// concurrent.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <thread>

#include "base/mutex.h"
#include "client/control_channel.h"

namespace regatta::client {

using WorkerProgress = ps::WorkerProgress;

class Heartbeat {
 public:
  // Beats at once, and then every two seconds. Borrows the servers.
  Heartbeat(const ps::WorkerId& worker, std::span<const std::unique_ptr<ControlChannel>> servers);
  // Afterwards no beat is under way.
  ~Heartbeat();

  // What the next beats carry.
  void SetProgress(const WorkerProgress& progress);
  // Worker 0: of all workers that are there, as of the last beat. Empty for the others.
  std::map<int, WorkerProgress> progress() const;
  // Tells it to the other workers, with a beat that comes at once; and whether somebody has asked.
  void AskToStop();
  bool stop_asked() const { return stop_asked_; }
  // `fn` runs before every beat, on the heartbeat's thread. An empty one ends that; then none is under way.
  void OnBeat(std::function<void()> fn);

 private:
  void Run();
  void Beat();

  const ps::WorkerId worker_;
  const std::span<const std::unique_ptr<ControlChannel>> servers_;
  std::atomic<bool> stop_asked_{false};
  base::Mutex on_beat_mu_;  // held while on_beat_ runs
  std::function<void()> on_beat_ ABSL_GUARDED_BY(on_beat_mu_);
  mutable base::Mutex mu_;
  base::CondVar wake_;
  WorkerProgress progress_ ABSL_GUARDED_BY(mu_);
  std::map<int, WorkerProgress> everybodys_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace regatta::client
