#include "client/heartbeat.h"

#include <chrono>
#include <utility>

namespace regatta::client {
namespace {

constexpr std::chrono::milliseconds kBeat(2000);

}  // namespace

Heartbeat::Heartbeat(const ps::WorkerId& worker, std::span<const std::unique_ptr<ControlChannel>> servers)
    : worker_(worker), servers_(servers), thread_([this] { Run(); }) {}

Heartbeat::~Heartbeat() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
}

void Heartbeat::SetProgress(const WorkerProgress& progress) {
  base::MutexLock lock(mu_);
  progress_ = progress;
}

std::map<int, WorkerProgress> Heartbeat::progress() const {
  base::MutexLock lock(mu_);
  return everybodys_;
}

void Heartbeat::AskToStop() {
  stop_asked_ = true;
  base::MutexLock lock(mu_);
  wake_.NotifyAll();
}

void Heartbeat::OnBeat(std::function<void()> fn) {
  base::MutexLock lock(on_beat_mu_);
  on_beat_ = std::move(fn);
}

void Heartbeat::Run() {
  while (true) {
    {
      base::MutexLock lock(on_beat_mu_);
      if (on_beat_) on_beat_();
    }
    Beat();
    base::MutexLock lock(mu_);
    if (stopping_) return;
    wake_.WaitFor(mu_, kBeat);
    if (stopping_) return;
  }
}

void Heartbeat::Beat() {
  ps::HeartbeatRequest request;
  *request.mutable_worker() = worker_;
  {
    base::MutexLock lock(mu_);
    *request.mutable_progress() = progress_;
  }
  for (size_t server = 0; server < servers_.size(); ++server) {
    request.set_wants_all(server == 0 && worker_.rank() == 0);
    request.set_stopping(stop_asked_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kBeat);
    ps::HeartbeatReply reply;
    if (!servers_[server]->stub().Heartbeat(&context, request, &reply).ok()) continue;  // its lanes tell what is wrong
    if (reply.stopping()) stop_asked_ = true;
    if (!request.wants_all()) continue;
    base::MutexLock lock(mu_);
    everybodys_.clear();
    for (int i = 0; i < reply.progress_size() && i < reply.ranks_size(); ++i)
      everybodys_[static_cast<int>(reply.ranks(i))] = reply.progress(i);
  }
}

}  // namespace regatta::client
