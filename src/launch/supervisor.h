// Starts the processes of a plan and watches over them to the end:
//   all workers end well      the servers get the grace time to end by themselves, then they are ended
//   one is killed             it is started again while restarts are left; a worker only where it can go on
//   a worker is killed        when the job is done, which a server's good end tells: it is not missed
//   a worker is killed        where the configuration lets the job shrink, the others go on without it; not worker 0
//   one fails                 it is named with the last lines of its log, the others are ended
//   a worker asks for it      after one was killed: all are ended, and the whole job begins again (kBeginAgain)
//   Ctrl+C, SIGTERM, SIGHUP   all are ended; a second signal kills them at once
// Ending means SIGTERM to the workers' groups, and when those are gone (they may be saving what the servers hold) to
// the servers'; a process that is still there after the grace time is killed. Nothing of the job is left when Run
// returns, and if the launcher itself is killed, the kernel and the guard end the job. Thread-safety: belongs to one
// thread, and the process has only that one. One at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/guard.h"
#include "launch/job_mark.h"
#include "launch/job_plan.h"
#include "launch/log_stream.h"
#include "launch/port_lease.h"
#include "launch/signal_inbox.h"
#include "launch/worker_loss.h"

namespace regatta::launch {

// The exit code of a worker whose job cannot go on after a kill, and can begin again from its last save (EX_TEMPFAIL).
inline constexpr int kBeginAgain = 75;

struct SupervisorOptions {
  std::string program;               // in front of messages: "regatta launch"
  std::vector<std::string> command;  // argv of every process
  std::chrono::milliseconds grace{30'000};
  int max_restarts = 0;           // of processes that were killed, all together
  bool restarts_workers = false;  // not of servers only
  WorkerLoss worker_loss;
  // Makes way for a job that begins again: what servers have logged is of the one before. `times`: that one included.
  std::function<absl::Status(int times)> clear_for_new_job = nullptr;
};

class Supervisor {
 public:
  // leases[i] holds the port of the i-th server as long as the job runs; empty where ports are given.
  Supervisor(SupervisorOptions options, JobPlan plan, std::vector<PortLease> leases);

  // The job's exit code: 0, the first failing process's, or 128 + the signal that stopped it.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Child {
    PlannedProcess planned;
    pid_t pid = 0;
    bool running = false;
    bool started = false;   // at least once
    bool again = false;     // at least twice
    bool needless = false;  // it was told to end because the job is done
  };
  enum class Stage : uint8_t {
    kRunning,
    kServersFinish,   // the workers are done
    kEndingWorkers,   // SIGTERM was sent to them
    kKillingWorkers,  // SIGKILL was
    kEndingServers,   // the workers are gone, SIGTERM was sent to the servers
    kKilling,         // SIGKILL was sent to all
    kGivenUp,         // a process does not even die of SIGKILL
  };

  void RunJob(SignalInbox& inbox);
  absl::Status StartAll();
  absl::Status Start(Child& child);
  // Whether a child that ended so is running again.
  bool Restart(Child& child, int status);
  // Whether the job goes on without one that ended so.
  bool DoneWithout(const Child& child, int status) const;
  // ", and is not started again (…)" of one that was killed where others are; "" elsewhere.
  std::string WhyNotAgain(const Child& child, int status) const;
  std::vector<std::string> EnvironmentFor(const PlannedProcess& planned) const;
  void ShowStart() const;
  void Watch(SignalInbox& inbox);
  void WaitForNews(SignalInbox& inbox, LogStream::State output);
  void Reap();
  void OnExit(Child& child, int status);
  void OnSignal(int number);
  // Ends workers that were started again for a job that is done: they wait for servers that have ended.
  void EndNeedless();
  // Whether a worker that ended so has asked that the job begins again, and it may.
  bool AsksToBeginAgain(const Child& child, int status) const;
  absl::Status BeginAgain();
  // Moves to the next stage where its time or its condition has come.
  void Advance();
  void Enter(Stage stage);
  // Ends everything; the first reason gives the exit code.
  void Stop(int exit_code);

  int Running(cluster::Role role) const;
  int Running() const { return Running(cluster::Role::kServer) + Running(cluster::Role::kWorker); }
  void Signal(cluster::Role role, int number);
  // Of one role or of all: for messages.
  std::string NamesOfRunning(std::optional<cluster::Role> role = std::nullopt) const;
  void Report(const std::string& message) const;

  // constant after construction
  const SupervisorOptions options_;
  const WorkersHere workers_here_;
  JobMark mark_;
  const Guard* guard_ = nullptr;  // while Run runs

  std::vector<Child> children_;
  const std::vector<PortLease> leases_;
  LogStream stream_;
  Stage stage_ = Stage::kRunning;
  Clock::time_point deadline_ = Clock::time_point::max();
  int exit_code_ = 0;
  int restarts_ = 0;
  int restarts_before_ = 0;  // of the job that runs: when it began
  int jobs_ = 1;             // that were begun
  bool again_ = false;       // the job is to begin again
  bool told_to_stop_ = false;
  std::optional<Clock::time_point> served_;  // when a server ended well: all workers were done
};

}  // namespace regatta::launch
