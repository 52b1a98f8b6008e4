#include "launch/supervisor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "absl/strings/str_join.h"
#include "cluster/environment.h"
#include "launch/child_process.h"
#include "launch/guard.h"
#include "launch/log_tail.h"

namespace regatta::launch {
namespace {

using cluster::Role;
using std::chrono::milliseconds;

constexpr int kLastLines = 20;
constexpr milliseconds kStreamPeriod(50);
constexpr milliseconds kKillTimeout(10'000);     // a process in an uninterruptible wait dies late
constexpr milliseconds kLeftoverTimeout(2'000);  // what a process left running behind it
constexpr milliseconds kSettle(3'000);           // for workers that end by themselves when the job is done
constexpr size_t kShownProcesses = 32;

std::string Seconds(milliseconds time) { return absl::StrCat(static_cast<double>(time.count()) / 1000, " s"); }

// "1 server", "2 servers", "2 processes".
std::string Count(int count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : noun.back() == 's' ? "es" : "s");
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, JobPlan plan, std::vector<PortLease> leases)
    : options_(std::move(options)),
      workers_here_(plan.workers_here),
      leases_(std::move(leases)),
      stream_(STDOUT_FILENO) {
  for (PlannedProcess& planned : plan.processes) children_.push_back({.planned = std::move(planned)});
}

int Supervisor::Run() {
  absl::StatusOr<SignalInbox> inbox = SignalInbox::Open();
  absl::StatusOr<Guard> guard = Guard::Start(mark_);
  if (!inbox.ok() || !guard.ok()) {
    Report(std::string(inbox.ok() ? guard.status().message() : inbox.status().message()));
    return 1;
  }
  guard_ = &*guard;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // grandchildren that lose their parent are reaped here
  RunJob(*inbox);
  while (again_) {
    if (const absl::Status cleared = BeginAgain(); !cleared.ok()) {
      Report(std::string(cleared.message()));
      exit_code_ = 1;
      break;
    }
    RunJob(*inbox);
  }
  stream_.Drain();
  if (const int left = mark_.End(std::min(options_.grace, kLeftoverTimeout)); left > 0)
    Report(absl::StrCat("ended ", Count(left, "process"), " that the job had left behind"));
  return exit_code_;
}

void Supervisor::RunJob(SignalInbox& inbox) {
  const absl::Status started = StartAll();
  if (started.ok()) {
    ShowStart();
  } else {
    Report(std::string(started.message()));
    Stop(1);
  }
  Watch(inbox);
}

// Only after a kill, so that what fails by itself does not fail for ever.
bool Supervisor::AsksToBeginAgain(const Child& child, int status) const {
  return child.planned.role == Role::kWorker && ExitCodeOf(status) == kBeginAgain && !told_to_stop_ &&
         options_.restarts_workers && workers_here_ == WorkersHere::kAll && restarts_ > restarts_before_;
}

absl::Status Supervisor::BeginAgain() {
  stream_.Drain();
  if (options_.clear_for_new_job != nullptr) RETURN_IF_ERROR(options_.clear_for_new_job(jobs_));
  again_ = false;
  restarts_before_ = restarts_;
  ++jobs_;
  exit_code_ = 0;
  served_.reset();
  stage_ = Stage::kRunning;
  deadline_ = Clock::time_point::max();
  for (Child& child : children_) child.again = child.needless = false;
  Report("the job begins again, from its last save");
  return absl::OkStatus();
}

absl::Status Supervisor::StartAll() {
  for (Child& child : children_) {
    RETURN_IF_ERROR(Start(child));
    if (child.planned.role == Role::kWorker && child.planned.index == 0)
      RETURN_IF_ERROR(stream_.Open(child.planned.log));
  }
  return absl::OkStatus();
}

absl::Status Supervisor::Start(Child& child) {
  absl::StatusOr<pid_t> pid =
      launch::Start({options_.command, EnvironmentFor(child.planned), child.planned.log, /*keep_log=*/child.started});
  if (!pid.ok()) return base::Annotate(pid.status(), child.planned.Name());
  child.pid = *pid;
  mark_.AddGroup(*pid);
  guard_->AddGroup(*pid);
  child.again = child.started;
  child.running = child.started = true;
  return absl::OkStatus();
}

// One that ends by itself has said why, and would say it again.
bool Supervisor::Restart(Child& child, int status) {
  if (!WasKilled(status) || restarts_ >= options_.max_restarts) return false;
  if (child.planned.role == Role::kWorker && !options_.restarts_workers) return false;
  const pid_t before = child.pid;
  if (const absl::Status started = Start(child); !started.ok()) {
    Report(std::string(started.message()));
    return false;
  }
  Report(absl::StrCat(child.planned.Name(), " (pid ", before, ") ", DescribeStatus(status), "; started again as pid ",
                      child.pid, ", restart ", ++restarts_, " of ", options_.max_restarts));
  return true;
}

bool Supervisor::DoneWithout(const Child& child, int status) const {
  return WasKilled(status) && child.planned.role == Role::kWorker && child.planned.index != 0 &&
         options_.worker_loss.policy == base::LossPolicy::kShrink;
}

std::string Supervisor::WhyNotAgain(const Child& child, int status) const {
  if (!WasKilled(status) || options_.max_restarts == 0) return "";
  if (child.planned.role == Role::kWorker && !options_.restarts_workers)
    return absl::StrCat(", and is not started again (", options_.worker_loss.why, ")");
  if (restarts_ < options_.max_restarts) return "";
  return absl::StrCat(", and is not started again (--max_restarts=", options_.max_restarts, " is used up)");
}

std::vector<std::string> Supervisor::EnvironmentFor(const PlannedProcess& planned) const {
  std::set<std::string, std::less<>> replaced = {JobMark::kName};
  for (const std::string_view name : cluster::RoleVariables()) replaced.emplace(name);
  for (const auto& variable : planned.environment) replaced.insert(variable.first);
  std::vector<std::string> environment;
  for (char** it = environ; *it != nullptr; ++it) {
    const std::string_view variable = *it;
    if (!replaced.contains(variable.substr(0, variable.find('=')))) environment.emplace_back(variable);
  }
  for (const auto& variable : planned.environment)
    environment.push_back(absl::StrCat(variable.first, "=", variable.second));
  environment.push_back(mark_.Variable(std::getenv(JobMark::kName)));
  if (jobs_ > 1) environment.push_back(absl::StrCat("REGATTA_JOB_RESTARTS=", jobs_ - 1));
  return environment;
}

void Supervisor::ShowStart() const {
  std::string text = absl::StrCat("started ", Count(Running(Role::kServer), "server"), " and ",
                                  Count(Running(Role::kWorker), "worker"));
  if (children_.size() <= kShownProcesses) {
    for (const Child& child : children_) {
      absl::StrAppend(&text, "\n  ", child.planned.Name(), ": pid ", child.pid,
                      child.planned.endpoint.empty() ? "" : absl::StrCat(", ", child.planned.endpoint), ", ",
                      child.planned.log,
                      child.planned.metrics_port == 0
                          ? ""
                          : absl::StrCat(", http://127.0.0.1:", child.planned.metrics_port, "/metrics"));
    }
  }
  if (!children_.empty())
    for (const auto& [name, value] : children_.front().planned.environment)
      if (name == "PADDLE_PSERVERS_IP_PORT_LIST" && !value.empty())
        absl::StrAppend(&text, "\n  look at it with: regatta status --servers=", value);
  Report(text);
}

void Supervisor::Watch(SignalInbox& inbox) {
  while (Running() > 0 && stage_ != Stage::kGivenUp) {
    WaitForNews(inbox, stream_.Pump());
    for (const int number : inbox.Take())
      if (number != SIGCHLD) OnSignal(number);
    Reap();
    Advance();
  }
}

void Supervisor::WaitForNews(SignalInbox& inbox, LogStream::State output) {
  milliseconds timeout = kStreamPeriod;
  if (deadline_ != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
    timeout = std::clamp(left, milliseconds(0), kStreamPeriod);
  }
  pollfd wait[] = {{inbox.fd(), POLLIN, 0}, {stream_.out(), POLLOUT, 0}};
  poll(wait, output == LogStream::State::kOutputBusy ? 2 : 1, static_cast<int>(timeout.count()));
}

void Supervisor::Reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto child =
        std::find_if(children_.begin(), children_.end(), [pid](const Child& c) { return c.running && c.pid == pid; });
    if (child == children_.end()) continue;  // an orphan of the job
    child->running = false;
    OnExit(*child, status);
  }
}

void Supervisor::OnExit(Child& child, int status) {
  const bool expected = stage_ != Stage::kRunning && stage_ != Stage::kServersFinish;
  const bool worker = child.planned.role == Role::kWorker;
  if (AsksToBeginAgain(child, status)) {
    if (!again_)
      Report(absl::StrCat(child.planned.Name(), " asks that the job begins again; ending ", NamesOfRunning()));
    again_ = true;
    if (!expected) Stop(1);
    return;
  }
  if (!worker && ExitCodeOf(status) == 0 && !served_.has_value()) served_ = Clock::now();
  if (child.needless) return;
  if (worker && served_.has_value() && options_.restarts_workers && WasKilled(status) && !expected) {
    Report(absl::StrCat(child.planned.Name(), " (pid ", child.pid, ") ", DescribeStatus(status),
                        " when the job was done; it is not started again"));
    return;
  }
  if (expected || ExitCodeOf(status) == 0 || Restart(child, status)) return;
  stream_.Drain();
  const std::string lines = LastLines(child.planned.log, kLastLines, "  | ");
  Report(absl::StrCat(child.planned.Name(), " (pid ", child.pid, ") ", DescribeStatus(status),
                      WhyNotAgain(child, status),
                      lines.empty() ? absl::StrCat("; its log ", child.planned.log, " is empty")
                                    : absl::StrCat("; the last lines of ", child.planned.log, ":\n", lines)));
  if (DoneWithout(child, status)) {
    Report(absl::StrCat("the job goes on without ", child.planned.Name(), " (", options_.worker_loss.why, ")"));
    return;
  }
  if (Running() > 0) Report(absl::StrCat("ending ", NamesOfRunning()));
  Stop(ExitCodeOf(status));
}

void Supervisor::OnSignal(int number) {
  const bool again = stage_ != Stage::kRunning && stage_ != Stage::kServersFinish;
  if (again) {
    told_to_stop_ = true;
    again_ = false;
    Report(absl::StrCat("killing ", NamesOfRunning()));
    Enter(Stage::kKilling);
    return;
  }
  Report(absl::StrCat("stopping ", NamesOfRunning(), "; they have ", Seconds(options_.grace),
                      " to save and end. Once more to kill them at once"));
  told_to_stop_ = true;
  again_ = false;
  Stop(128 + number);
}

void Supervisor::Stop(int exit_code) {
  exit_code_ = exit_code;
  Enter(Running(Role::kWorker) > 0 ? Stage::kEndingWorkers : Stage::kEndingServers);
}

void Supervisor::EndNeedless() {
  if (!served_.has_value() || Clock::now() - *served_ < kSettle) return;
  for (Child& child : children_) {
    if (!child.running || !child.again || child.needless || child.planned.role != Role::kWorker) continue;
    Report(absl::StrCat("the job is done; ending ", child.planned.Name(), " (pid ", child.pid,
                        "), which was started again for it"));
    child.needless = true;
    SignalGroup(child.pid, SIGTERM);
  }
}

void Supervisor::Advance() {
  if (stage_ == Stage::kRunning) EndNeedless();
  const bool late = Clock::now() >= deadline_;
  const int workers = Running(Role::kWorker);
  if (stage_ == Stage::kRunning && workers == 0 && workers_here_ == WorkersHere::kAll) {
    Enter(Stage::kServersFinish);
  } else if (stage_ == Stage::kServersFinish && late) {
    Report(absl::StrCat("the workers ended well ", Seconds(options_.grace), " ago; ending ", NamesOfRunning()));
    Enter(Stage::kEndingServers);
  } else if ((stage_ == Stage::kEndingWorkers || stage_ == Stage::kKillingWorkers) && workers == 0) {
    Enter(Stage::kEndingServers);
  } else if ((stage_ == Stage::kEndingWorkers || stage_ == Stage::kEndingServers) && late) {
    const bool servers = stage_ == Stage::kEndingServers;
    Report(absl::StrCat("killing ", NamesOfRunning(servers ? Role::kServer : Role::kWorker), ", not ended in ",
                        Seconds(options_.grace)));
    Enter(servers ? Stage::kKilling : Stage::kKillingWorkers);
  } else if (stage_ == Stage::kKillingWorkers && late) {
    Enter(Stage::kKilling);
  } else if (stage_ == Stage::kKilling && late) {
    Report(absl::StrCat("gave up waiting for ", NamesOfRunning(), ", which SIGKILL does not end"));
    Enter(Stage::kGivenUp);
  }
}

void Supervisor::Enter(Stage stage) {
  const bool killing = stage == Stage::kKilling || stage == Stage::kKillingWorkers;
  stage_ = stage;
  deadline_ = Clock::now() + (killing ? kKillTimeout : options_.grace);
  if (stage == Stage::kEndingWorkers) Signal(Role::kWorker, SIGTERM);
  if (stage == Stage::kEndingServers) Signal(Role::kServer, SIGTERM);
  if (killing) Signal(Role::kWorker, SIGKILL);
  if (stage == Stage::kKilling) Signal(Role::kServer, SIGKILL);
}

int Supervisor::Running(Role role) const {
  return static_cast<int>(std::count_if(children_.begin(), children_.end(),
                                        [role](const Child& c) { return c.running && c.planned.role == role; }));
}

void Supervisor::Signal(Role role, int number) {
  for (const Child& child : children_)
    if (child.running && child.planned.role == role) SignalGroup(child.pid, number);
}

std::string Supervisor::NamesOfRunning(std::optional<Role> role) const {
  std::vector<std::string> names;
  for (const Child& child : children_) {
    if (!child.running || child.planned.role != role.value_or(child.planned.role)) continue;
    if (names.size() == kShownProcesses) {
      names.push_back("…");
      break;
    }
    names.push_back(absl::StrCat(child.planned.Name(), " (pid ", child.pid, ")"));
  }
  return names.empty() ? "what is left" : absl::StrJoin(names, ", ");
}

void Supervisor::Report(const std::string& message) const {
  std::fprintf(stderr, "%s: %s%s", options_.program.c_str(), message.c_str(),
               !message.empty() && message.back() == '\n' ? "" : "\n");
}

}  // namespace regatta::launch
