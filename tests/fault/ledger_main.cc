// One worker of a job whose pushes can be counted afterwards. In async every (rank, number) has rows of its own, pushed
// once with a gradient that makes them exactly 1; in geo they are pushed, and others added to: 0 is lost, 2 was done
// twice. In sync all workers push the same rows step after step, and every pull must see exactly the steps before it. A
// dense parameter grows by 1 with every push. What is acknowledged goes to a file of the worker's own, outside of the
// fault's path. With --on_loss await a ledger that was killed is started again with another incarnation, and goes on
// where the servers say that its rank stands.
// --load_every: now and then the workers come to a barrier, and worker 0 drops every row and loads a few; what was
// pushed before must not come back. --refuse_every: frames that a server must refuse come between the pushes, and must
// leave nothing. SIGTERM ends the pushes; then the workers come to a barrier, and each reads its rows back.
#include <fcntl.h>
#include <glog/logging.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "ack_file.h"
#include "base/command_line.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/grouped_keys.h"
#include "client/connection.h"
#include "cluster/credentials.h"
#include "row_count.h"

namespace regatta::fault {
namespace {

enum Exit : int { kExact = 0, kWrong = 1, kUsage = 2, kJobFailed = 3 };

constexpr int kDense = 64;    // parameters; the even ones are pushed, in geo the odd ones added to
constexpr float kLoaded = 5;  // the value of rows that are loaded
constexpr uint64_t kLoadedRank = 500, kRefusedRank = 501;  // whose keys these are
constexpr uint64_t kGroups = 7;                            // of rows in sync: step t touches group t % kGroups
constexpr size_t kCheckKeys = 4096;                        // read back at a time
constexpr uint64_t kMostKeys = uint64_t{1} << 20;
constexpr uint64_t kMostPushes = uint64_t{1} << 32;

volatile sig_atomic_t stopped = 0;

struct Args {
  std::vector<std::string> servers;
  uint32_t rank = 0;
  uint32_t workers = 1;
  uint64_t count = kMostPushes;
  uint64_t keys = 8;
  int dim = 4;
  uint32_t lanes = 2;
  size_t in_flight = 8;
  std::string mode = "async";
  std::string ack;
  std::string acks;
  std::string on_loss = "fail";
  uint64_t incarnation = 0;
  double wait = 60;
  uint64_t load_every = 0;
  uint64_t refuse_every = 0;
  double pause = 0;
  double linger = 0;
  bool check = false;
  cluster::CredentialFiles credentials;
};

absl::StatusOr<std::string> Parse(int argc, const char* const* argv, Args& args) {
  CLI::App app{"A worker whose pushes can be counted afterwards.", "ledger"};
  app.footer(
      "Exit codes: 0 every row is exact, 1 rows were lost, doubled or wrong, 2 wrong arguments, 3 the job failed; it "
      "is left as a killed worker leaves it, and --check with the same --incarnation looks at what it had been told.");
  app.add_option("--servers", args.servers, "host:port,...")->delimiter(',')->required();
  app.add_option("--rank", args.rank)->capture_default_str();
  app.add_option("--workers", args.workers)->check(CLI::Range(1u, 64u))->capture_default_str();
  app.add_option("--count", args.count, "pushes; otherwise until SIGTERM")->check(CLI::Range(uint64_t{1}, kMostPushes));
  app.add_option("--keys", args.keys, "of a push")->check(CLI::Range(uint64_t{1}, kMostKeys))->capture_default_str();
  app.add_option("--dim", args.dim, "floats of a row")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--lanes", args.lanes, "to a server, besides the dense one")->capture_default_str();
  app.add_option("--in_flight", args.in_flight, "pushes that are not acknowledged yet; async")
      ->check(CLI::Range(size_t{1}, size_t{4096}))
      ->capture_default_str();
  app.add_option("--mode", args.mode)->check(CLI::IsMember({"async", "geo", "sync"}))->capture_default_str();
  app.add_option("--ack", args.ack, "memory, logged, synced; the server's default otherwise");
  app.add_option("--on_loss", args.on_loss, "what becomes of the job when a worker dies")
      ->check(CLI::IsMember({"fail", "await"}))
      ->capture_default_str();
  app.add_option("--acks", args.acks, "file that gets a line for every acknowledged push")->required();
  app.add_option("--incarnation", args.incarnation, "of this worker; the process id otherwise");
  app.add_option("--wait", args.wait, "seconds for a server that is away")->capture_default_str();
  app.add_option("--load_every", args.load_every,
                 "pushes, between which all rows are dropped and a few loaded; 0 = never")
      ->capture_default_str();
  app.add_option("--refuse_every", args.refuse_every, "pushes, between which frames come that are refused; 0 = never")
      ->capture_default_str();
  app.add_option("--pause", args.pause, "seconds between pushes")->capture_default_str();
  app.add_option("--linger", args.linger, "seconds before the goodbye, in which it may be killed")
      ->capture_default_str();
  app.add_flag("--check", args.check, "push nothing: read back what the file of acknowledgements tells of; async");
  cluster::AddCredentialOptions(app, args.credentials);
  ASSIGN_OR_RETURN(const std::string help, base::ParseWords(app, argc, argv));
  if (args.incarnation == 0) args.incarnation = static_cast<uint64_t>(getpid());
  if (args.check && (args.mode == "sync" || args.load_every > 0))
    return absl::InvalidArgumentError("ledger: --check is for --mode async and geo, without --load_every");
  if (args.mode == "geo" && args.on_loss == "await")  // an addition names no batch, and would be done again
    return absl::InvalidArgumentError("ledger: --on_loss await is for --mode async and sync");
  if (args.load_every > 0 && args.on_loss == "await")
    return absl::InvalidArgumentError("ledger: --load_every is for --on_loss fail");
  return help;
}

client::ClientOptions OptionsOf(const Args& args) {
  client::ClientOptions options;
  for (const std::string& server : args.servers) options.servers.push_back({{server}, {}});
  options.worker.set_rank(args.rank);
  options.worker.set_incarnation(args.incarnation);
  options.worker.set_where(absl::StrCat("ledger, pid ", getpid()));
  options.job.set_mode(args.mode);
  options.job.set_workers(args.workers);
  options.job.set_sparse_lanes(args.lanes);
  options.job.set_nan_policy("abort");
  options.job.set_on_worker_loss(args.on_loss);
  if (args.on_loss == "await") options.job.set_worker_wait(60);
  options.job.set_ack(args.ack);
  options.wait_timeout = std::chrono::duration<double>(args.wait);
  // A gradient of -1 at a learning rate of 1 adds 1.
  const table::RuleConfig rule{.name = "sgd", .learning_rate = 1};
  const table::InitializerConfig zeros{.name = "zeros", .a = 0, .b = 0};
  for (const char* name : {"pushed", "added"}) {
    table::SparseTableConfig table;
    table.name = name;
    table.dim = args.dim;
    table.rule = rule;
    table.init = zeros;
    options.tables.sparse.push_back(table);
  }
  options.tables.dense.parameters.push_back({"count", {kDense}, zeros});
  options.tables.dense.rule = rule;
  return options;
}

std::string LeftFile(const Args& args) { return args.acks + ".left"; }

class Ledger {
 public:
  Ledger(const Args& args, client::Connection& connection, AckFile acks)
      : args_(args),
        control_(connection.control()),
        client_(connection.data()),
        acks_(std::move(acks)),
        ones_(args.keys * static_cast<size_t>(args.dim), 1.0f) {
    minus_ones_.assign(ones_.size(), -1.0f);
    dense_grad_.assign(kDense, 0.0f);
    dense_difference_.assign(kDense, 0.0f);
    for (size_t i = 0; i < kDense; ++i)
      (i % 2 == 0 ? dense_grad_[i] : dense_difference_[i]) = i % 2 == 0 ? -1.0f : 1.0f;
  }

  absl::Status RunAsync();
  absl::Status RunSync();
  absl::Status Check();
  const Count& count() const { return count_; }
  uint64_t pushes() const { return pushes_; }

 private:
  // Distinct for every (rank, number); in sync rank and number are those of the group.
  std::vector<base::Key> KeysOf(uint64_t rank, uint64_t number) const {
    std::vector<base::Key> keys(args_.keys);
    std::iota(keys.begin(), keys.end(), (rank + 1) << 53 | number << 20);
    return keys;
  }
  void SendAsync(uint64_t number, client::Call& call);
  // What a row of a group has come to when the steps before `step` are applied; sync.
  uint64_t StepsOf(uint64_t group, uint64_t step) const {
    const auto before = [group](uint64_t end) { return (end + kGroups - 1 - group) / kGroups; };
    const uint64_t loaded = loads_ > 0 && group == 0 ? static_cast<uint64_t>(kLoaded) : 0;
    return loaded + before(step) - before(loaded_at_);
  }
  // What the process before this one may have pushed down some lanes only goes down all of them, whoever says stop.
  bool GoesOn() const {
    if (pushes_ >= args_.count || left_ || control_.resume_point().Completed("pushed")) return false;
    const uint64_t under_way = args_.mode == "sync" ? 1 : args_.in_flight;
    const client::ResumePoint& resume_point = control_.resume_point();
    return stopped == 0 || (resume_point.returns() && pushes_ < resume_point.position.low + under_way);
  }
  // Whether what was acknowledged is added to besides.
  bool adds() const { return args_.mode == "geo"; }
  // Frames that the servers must refuse, and of which nothing may be left.
  absl::Status Refuse();
  absl::Status CheckRefused();
  // All workers come to a barrier; where all go on, worker 0 drops every row and loads `keys`. Whether they go on.
  absl::StatusOr<bool> Load(const std::vector<base::Key>& keys);
  // This worker stops, where others may be about to come to a barrier for a load.
  absl::Status EndLoads();
  absl::Status Replace(const std::vector<base::Key>& keys);
  // What was pushed before the last load is gone, and what was loaded is there. async and geo.
  absl::Status CheckLoaded();
  // The pushes of every worker, when all are done.
  absl::StatusOr<std::vector<uint64_t>> AllGather(const std::string& name, uint64_t pushes);
  absl::Status ReadBack(std::span<const base::Key> keys, base::StepKind kind, uint64_t step, std::vector<float>* pushed,
                        std::vector<float>* added);
  absl::Status CheckPushes(const std::vector<uint64_t>& numbers, bool acknowledged);
  absl::Status CheckDense(uint64_t least, uint64_t most, bool adds);

  const Args& args_;
  client::JobControl& control_;
  client::GrpcClient& client_;
  AckFile acks_;
  std::vector<float> ones_, minus_ones_;
  std::vector<float> dense_grad_, dense_difference_;
  const bool left_ = base::Exists(LeftFile(args_));  // a pass of sync, before this process
  uint64_t loads_ = 0;
  uint64_t loaded_at_ = 0;      // pushes of this worker before the last load
  uint64_t all_loaded_at_ = 0;  // of all workers
  uint64_t pushes_ = 0;
  Count count_;
};

void Ledger::SendAsync(uint64_t number, client::Call& call) {
  const base::GroupedKeys keys(KeysOf(args_.rank, number));
  base::TableGrads tables[2];
  for (int i = 0; i < 2; ++i) {
    tables[i].keys = keys.view();
    tables[i].keys.table = i;
    tables[i].grads = {(i == 0 ? minus_ones_ : ones_).data(), args_.dim, args_.dim};
  }
  const base::DenseGrad dense{0, dense_grad_};
  base::StepGrads grads;
  grads.step = grads.batch = number;
  grads.samples = 1;
  grads.tables = {&tables[0], 1};
  grads.dense = {&dense, 1};
  client_.Push(grads, call);
  client_.PushDense(grads, call);
  if (!adds()) return;
  client_.Combine({0, number + 1, number + 1}, {&tables[1], 1}, call);  // of rows that nobody else changes
  client_.AddDense(dense_difference_, call);
}

// The first frame has two bytes too many; the second would be the rest of its push.
absl::Status Ledger::Refuse() {
  const std::vector<base::Key> keys = KeysOf(kRefusedRank, 0);
  for (int server = 0; server < client_.servers(); ++server) {
    for (int lane = 0; lane < client_.lanes().sparse_lanes; ++lane) {
      const auto mine = std::find_if(keys.begin(), keys.end(), [&](base::Key key) {
        return client_.lanes().Shards(server, lane).Contains(base::ShardOf(key));
      });
      if (mine == keys.end()) continue;
      base::MutexLock together(client_.lane(server, lane).push_order());
      client::Call calls[2];
      for (uint32_t part = 1; part <= 2; ++part) {
        ps::FrameHeader header;
        header.set_verb(ps::PUSH);
        header.set_step(pushes_);
        header.set_samples(1);
        header.set_part(part);
        header.set_more(part == 1);
        ps::Section& section = *header.add_sections();
        section.set_keys(1);
        section.set_width(static_cast<uint32_t>(args_.dim));
        const size_t row = static_cast<size_t>(args_.dim) * sizeof(float), bytes = sizeof(base::Key) + row + 2;
        calls[part - 1].Expect(1);
        client_.lane(server, lane)
            .Send(
                header, bytes,
                [&](wire::FrameWriter& writer) {
                  writer.Append(&*mine, sizeof *mine);
                  writer.Append(minus_ones_.data(), row);
                  writer.Append("xx", 2);
                },
                nullptr, calls[part - 1]);
      }
      for (client::Call& call : calls) {
        const absl::Status refused = call.Wait();
        if (refused.ok()) ++count_.wrong;
        if (!refused.ok() && !absl::IsInvalidArgument(refused) && !absl::IsFailedPrecondition(refused)) return refused;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Ledger::CheckRefused() {
  if (args_.refuse_every == 0) return absl::OkStatus();
  std::vector<float> pushed;
  RETURN_IF_ERROR(ReadBack(KeysOf(kRefusedRank, 0), base::StepKind::kInfer, 0, &pushed, nullptr));
  for (const float value : pushed) count_.Add(value, 0);
  return absl::OkStatus();
}

absl::StatusOr<bool> Ledger::Load(const std::vector<base::Key>& keys) {
  const bool goes_on = GoesOn();
  ASSIGN_OR_RETURN(const std::vector<uint64_t> all, AllGather(absl::StrCat("load ", loads_), pushes_ << 1 | goes_on));
  uint64_t total = 0;
  for (const uint64_t each : all) {
    if ((each & 1) == 0) return false;
    total += each >> 1;
  }
  if (args_.rank == 0) RETURN_IF_ERROR(Replace(keys));
  RETURN_IF_ERROR(AllGather(absl::StrCat("loaded ", loads_), 0).status());
  ++loads_;
  loaded_at_ = pushes_;
  all_loaded_at_ = total;
  return true;
}

absl::Status Ledger::EndLoads() {
  if (args_.load_every == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool goes_on, Load({}));
  return goes_on ? absl::InternalError("the others load, and this worker has stopped") : absl::OkStatus();
}

absl::Status Ledger::CheckLoaded() {
  std::vector<float> rows;
  for (uint64_t number = 0; number < loaded_at_; ++number) {
    RETURN_IF_ERROR(ReadBack(KeysOf(args_.rank, number), base::StepKind::kInfer, 0, &rows, nullptr));
    for (const float value : rows) count_.Add(value, 0);
    count_.rows += args_.keys;
  }
  for (uint64_t load = 0; load < loads_; ++load) {
    RETURN_IF_ERROR(ReadBack(KeysOf(kLoadedRank, load), base::StepKind::kInfer, 0, &rows, nullptr));
    for (const float value : rows) count_.Add(value, load + 1 == loads_ ? static_cast<uint64_t>(kLoaded) : 0);
  }
  return absl::OkStatus();
}

absl::Status Ledger::Replace(const std::vector<base::Key>& keys) {
  const wire::LaneMap& map = client_.lanes();
  client::Call call;
  client_.Clear(call);
  RETURN_IF_ERROR(call.Wait());
  const std::vector<float> row(static_cast<size_t>(args_.dim), kLoaded);
  for (int server = 0; server < map.servers; ++server) {
    for (int lane = 0; lane < map.sparse_lanes; ++lane) {
      for (const base::Key key : keys) {
        if (!map.Shards(server, lane).Contains(base::ShardOf(key))) continue;
        ps::FrameHeader header;
        header.set_verb(ps::LOAD_ROWS);
        header.set_shard(base::ShardOf(key));
        ps::Section& section = *header.add_sections();
        section.set_keys(1);
        section.set_width(static_cast<uint32_t>(args_.dim));
        call.Expect(1);
        client_.lane(server, lane)
            .Send(
                header, sizeof key + row.size() * sizeof(float),
                [&](wire::FrameWriter& writer) {
                  writer.Append(&key, sizeof key);
                  writer.Append(row.data(), row.size() * sizeof(float));
                },
                nullptr, call);
      }
    }
    const wire::Range block = map.DenseBlock(server, kDense);
    const std::vector<float> zeros(static_cast<size_t>(block.size()));
    ps::FrameHeader header;
    header.set_verb(ps::LOAD_DENSE);
    call.Expect(1);
    client_.lane(server, map.dense_lane())
        .Send(
            header, zeros.size() * sizeof(float),
            [&](wire::FrameWriter& writer) { writer.Append(zeros.data(), zeros.size() * sizeof(float)); }, nullptr,
            call);
  }
  return call.Wait();
}

absl::Status Ledger::RunAsync() {
  struct Push {
    uint64_t number = 0;
    client::Call call;
  };
  std::deque<std::unique_ptr<Push>> flight;
  const auto take = [&]() -> absl::Status {
    RETURN_IF_ERROR(flight.front()->call.Wait());
    RETURN_IF_ERROR(acks_.Note(flight.front()->number));
    flight.pop_front();
    return absl::OkStatus();
  };
  bool goes_on = true;
  while (goes_on && GoesOn()) {
    if (flight.size() >= args_.in_flight) RETURN_IF_ERROR(take());
    if (control_.resume_point().position.Contains(pushes_)) {
      ++pushes_;
      continue;
    }
    flight.push_back(std::make_unique<Push>());
    flight.back()->number = pushes_++;
    SendAsync(flight.back()->number, flight.back()->call);
    if (args_.refuse_every > 0 && pushes_ % args_.refuse_every == 0) RETURN_IF_ERROR(Refuse());
    if (args_.load_every > 0 && pushes_ % args_.load_every == 0) {
      while (!flight.empty()) RETURN_IF_ERROR(take());
      ASSIGN_OR_RETURN(goes_on, Load(KeysOf(kLoadedRank, loads_)));
    }
    if (args_.pause > 0) usleep(static_cast<useconds_t>(args_.pause * 1e6));
  }
  while (!flight.empty()) RETURN_IF_ERROR(take());
  if (goes_on) RETURN_IF_ERROR(EndLoads());
  ASSIGN_OR_RETURN(const std::vector<uint64_t> all, AllGather("pushed", pushes_));
  pushes_ = all[args_.rank];
  RETURN_IF_ERROR(CheckLoaded());
  std::vector<uint64_t> numbers(pushes_ - loaded_at_);
  std::iota(numbers.begin(), numbers.end(), loaded_at_);
  RETURN_IF_ERROR(CheckPushes(numbers, true));
  RETURN_IF_ERROR(CheckRefused());
  const uint64_t total = std::accumulate(all.begin(), all.end(), uint64_t{0}) - all_loaded_at_;
  RETURN_IF_ERROR(CheckDense(total, total, adds()));
  return AllGather("checked", 0).status();
}

absl::Status Ledger::RunSync() {
  client::Call call, pushes;
  client_.BeginPass({0, 0, base::StepKind::kTrain}, {}, call);
  RETURN_IF_ERROR(call.Wait());
  std::vector<float> pushed, dense_values(kDense);
  const uint64_t first = control_.resume_point().position.low;
  bool goes_on = true;
  for (pushes_ = first; goes_on && GoesOn(); ++pushes_) {
    const uint64_t step = pushes_;
    const std::vector<base::Key> keys = KeysOf(0, step % kGroups);
    if (args_.refuse_every > 0 && step % args_.refuse_every == 0) RETURN_IF_ERROR(Refuse());
    if (args_.load_every > 0 && step > loaded_at_ && step % args_.load_every == 0) {
      RETURN_IF_ERROR(pushes.Wait());
      ASSIGN_OR_RETURN(goes_on, Load(KeysOf(0, 0)));
      if (!goes_on) break;
    }
    client_.PullDense({0, step, base::StepKind::kTrain}, dense_values, call);
    RETURN_IF_ERROR(ReadBack(keys, base::StepKind::kTrain, step, &pushed, nullptr));
    RETURN_IF_ERROR(call.Wait());
    for (const float value : pushed) count_.Add(value, StepsOf(step % kGroups, step));
    for (size_t i = 0; i < kDense; i += 2) count_.Add(dense_values[i], step - loaded_at_);
    RETURN_IF_ERROR(pushes.Wait());
    if (step > first) RETURN_IF_ERROR(acks_.Note(step - 1));
    const base::GroupedKeys grouped(keys);
    base::TableGrads table;
    table.keys = grouped.view();
    table.grads = {minus_ones_.data(), args_.dim, args_.dim};
    const base::DenseGrad dense{0, dense_grad_};
    base::StepGrads grads;
    grads.step = grads.batch = step;
    grads.samples = 1;
    grads.tables = {&table, 1};
    grads.dense = {&dense, 1};
    client_.Push(grads, pushes);
    client_.PushDense(grads, pushes);
    if (args_.pause > 0) usleep(static_cast<useconds_t>(args_.pause * 1e6));
  }
  RETURN_IF_ERROR(pushes.Wait());
  // Who has left a pass brings no more of it, not even after a kill.
  if (args_.on_loss == "await") RETURN_IF_ERROR(base::WriteFileAtomically(LeftFile(args_), ""));
  client_.LeavePass({0, pushes_, base::StepKind::kTrain}, pushes);
  RETURN_IF_ERROR(pushes.Wait());
  if (goes_on) RETURN_IF_ERROR(EndLoads());
  ASSIGN_OR_RETURN(const std::vector<uint64_t> all, AllGather("pushed", pushes_));
  const uint64_t steps = *std::max_element(all.begin(), all.end());
  for (uint64_t group = 0; group < kGroups; ++group) {
    RETURN_IF_ERROR(ReadBack(KeysOf(0, group), base::StepKind::kInfer, 0, &pushed, nullptr));
    count_.rows += args_.keys;
    for (const float value : pushed) count_.Add(value, StepsOf(group, steps));
  }
  RETURN_IF_ERROR(CheckRefused());
  RETURN_IF_ERROR(CheckDense(steps - loaded_at_, steps - loaded_at_, false));
  return AllGather("checked", 0).status();
}

absl::Status Ledger::Check() {
  ASSIGN_OR_RETURN(std::vector<uint64_t> acknowledged, AckFile::Read(args_.acks));
  std::sort(acknowledged.begin(), acknowledged.end());
  pushes_ = acknowledged.size();
  RETURN_IF_ERROR(CheckPushes(acknowledged, true));
  std::vector<uint64_t> others;
  const uint64_t end = (acknowledged.empty() ? 0 : acknowledged.back() + 1) + args_.in_flight + 1;
  for (uint64_t number = 0; number < end; ++number)
    if (!std::binary_search(acknowledged.begin(), acknowledged.end(), number)) others.push_back(number);
  RETURN_IF_ERROR(CheckPushes(others, false));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> all, AllGather("looked", pushes_));
  const uint64_t total = std::accumulate(all.begin(), all.end(), uint64_t{0});
  RETURN_IF_ERROR(CheckDense(total, total + all.size() * (args_.in_flight + 1), adds()));
  return AllGather("checked", 0).status();
}

absl::StatusOr<std::vector<uint64_t>> Ledger::AllGather(const std::string& name, uint64_t pushes) {
  ASSIGN_OR_RETURN(const auto payloads, control_.Gather(name, absl::StrCat(pushes)));
  std::vector<uint64_t> all;
  for (const auto& [rank, payload] : payloads) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(payload, &number)) return absl::DataLossError(absl::StrCat("'", name, "' gave ", payload));
    all.push_back(number);
  }
  if (all.size() != args_.workers)
    return absl::DataLossError(absl::StrCat("'", name, "' gave what ", all.size(), " workers brought"));
  return all;
}

absl::Status Ledger::ReadBack(std::span<const base::Key> keys, base::StepKind kind, uint64_t step,
                              std::vector<float>* pushed, std::vector<float>* added) {
  const base::GroupedKeys grouped(std::vector<base::Key>(keys.begin(), keys.end()));
  std::vector<base::TableKeys> tables;
  std::vector<base::RowsView<float>> rows;
  for (std::vector<float>* out : {pushed, added}) {
    if (out == nullptr) continue;
    out->assign(keys.size() * static_cast<size_t>(args_.dim), -7.0f);
    tables.push_back(grouped.view());
    tables.back().table = out == pushed ? 0 : 1;
    rows.push_back({out->data(), args_.dim, args_.dim});
  }
  client::Call call;
  client_.Pull({0, step, kind}, tables, rows, call);
  return call.Wait();
}

absl::Status Ledger::CheckPushes(const std::vector<uint64_t>& numbers, bool acknowledged) {
  std::vector<base::Key> keys;
  std::vector<float> pushed, added;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::vector<base::Key> more = KeysOf(args_.rank, numbers[i]);
    keys.insert(keys.end(), more.begin(), more.end());
    if (keys.size() < kCheckKeys && i + 1 < numbers.size()) continue;
    RETURN_IF_ERROR(ReadBack(keys, base::StepKind::kInfer, 0, &pushed, &added));
    count_.rows += (adds() ? 2 : 1) * keys.size();
    for (const float value : pushed) count_.Add(value, 1, acknowledged);
    if (adds())
      for (const float value : added) count_.Add(value, 1, acknowledged);
    keys.clear();
  }
  return absl::OkStatus();
}

absl::Status Ledger::CheckDense(uint64_t least, uint64_t most, bool adds) {
  std::vector<float> values(kDense);
  client::Call call;
  client_.PullDense({0, 0, base::StepKind::kInfer}, values, call);
  RETURN_IF_ERROR(call.Wait());
  for (size_t i = 0; i < kDense; ++i) {
    if (!std::isfinite(values[i])) {
      ++count_.wrong;
    } else if (i % 2 == 1 && !adds) {
      count_.Add(values[i], 0);
    } else if (values[i] < static_cast<float>(least)) {
      ++count_.lost;
    } else if (values[i] > static_cast<float>(most)) {
      ++count_.doubled;
    }
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status, Exit code) {
  std::fprintf(stderr, "ledger: error: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  Args args;
  const auto help = Parse(argc, argv, args);
  if (!help.ok()) return Fail(help.status(), kUsage);
  if (!help->empty()) {
    std::fputs(help->c_str(), stdout);
    return 0;
  }
  signal(SIGTERM, [](int) { stopped = 1; });
  if (const char* failpoints = std::getenv("REGATTA_FAILPOINTS"); failpoints != nullptr)
    if (const absl::Status armed = base::ArmFailpoints(failpoints); !armed.ok()) return Fail(armed, kUsage);
  auto acks = AckFile::Open(args.acks);
  if (!acks.ok()) return Fail(acks.status(), kUsage);
  client::ClientOptions options = OptionsOf(args);
  auto credentials = cluster::LoadCredentials(args.credentials);
  if (!credentials.ok()) return Fail(credentials.status(), kUsage);
  options.credentials = *std::move(credentials);
  auto connection = client::Connection::Open(options);
  if (!connection.ok()) return Fail(connection.status(), kJobFailed);
  Ledger ledger(args, **connection, *std::move(acks));
  const absl::Status status = args.check ? ledger.Check() : args.mode == "sync" ? ledger.RunSync() : ledger.RunAsync();
  if (!status.ok()) _exit(Fail(status, kJobFailed));  // no goodbye: the servers would forget the job
  if (args.linger > 0) usleep(static_cast<useconds_t>(args.linger * 1e6));
  (*connection)->control().Goodbye(absl::OkStatus());
  uint64_t reconnects = 0;
  for (int server = 0; server < (*connection)->data().servers(); ++server)
    reconnects += (*connection)->data().traffic(server).reconnects.value();
  const Count& count = ledger.count();
  std::printf("rank %u pushes %lu rows %lu lost %lu doubled %lu wrong %lu extra %lu reconnects %lu\n", args.rank,
              ledger.pushes(), count.rows, count.lost, count.doubled, count.wrong, count.extra, reconnects);
  return count.exact() ? kExact : kWrong;
}

}  // namespace
}  // namespace regatta::fault

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  return regatta::fault::Main(argc, argv);
}
