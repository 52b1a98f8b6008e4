// A job without a network: a server's tables and staging (server/hosted_job.h) in this process, and a PsClient for
// every worker. Requests are served in their order by a thread for each lane, as a server serves them, so that a Call
// is pending for a while. A test can hold the lanes, let them fail, and read what has been pushed. Thread-safety: all
// methods are concurrent. Communicators end before the job does.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "client/ps_client.h"
#include "comm/agree.h"
#include "comm/step_copy.h"
#include "server/hosted_job.h"

namespace regatta::comm {

// Serves the requests of one worker on one lane in the order in which they were sent.
class InProcessLane {
 public:
  InProcessLane() : thread_([this] { Run(); }) {}
  ~InProcessLane() {
    {
      base::MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }
  void Send(client::Call& call, std::function<absl::Status()> serve) {
    call.Expect(1);
    base::MutexLock lock(mu_);
    requests_.push_back({&call, std::move(serve)});
    changed_.NotifyAll();
  }
  // While it is held nothing is served.
  void SetHeld(bool held) {
    base::MutexLock lock(mu_);
    held_ = held;
    changed_.NotifyAll();
  }
  // From now on requests are answered by this error.
  void Break(const absl::Status& failure) {
    base::MutexLock lock(mu_);
    failure_ = failure;
  }
  size_t waiting() const {
    base::MutexLock lock(mu_);
    return requests_.size();
  }

 private:
  struct Request {
    client::Call* call = nullptr;
    std::function<absl::Status()> serve;
  };
  void Run() {
    while (true) {
      Request request;
      absl::Status status;
      {
        base::MutexLock lock(mu_);
        while (!stopping_ && (requests_.empty() || held_)) changed_.Wait(mu_);
        if (requests_.empty()) return;
        request = std::move(requests_.front());
        requests_.pop_front();
        status = failure_;
      }
      request.call->Done(status.ok() ? request.serve() : status);
    }
  }

  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::deque<Request> requests_ ABSL_GUARDED_BY(mu_);
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

class InProcessJob {
 public:
  // A push, or a change of geo, as the servers got it.
  struct Pushed {
    int rank = 0;
    uint64_t step = 0;
    uint32_t samples = 0;
    std::vector<uint64_t> batches;
    std::vector<float> dense;        // of a dense one
    client::Rounds rounds;           // of a change
    std::optional<float> rate = {};  // of table 0, or the dense parameters
  };

  InProcessJob(base::Mode mode, int workers, const table::ModelConfig& tables) {
    server::JobSpec spec;
    spec.mode = mode;
    spec.workers = workers;
    spec.tables = tables;
    auto job = server::HostedJob::Create(spec, 0);
    CHECK(job.ok()) << job.status();
    job_ = *std::move(job);
    for (int rank = 0; rank < workers; ++rank) {
      CHECK(job_->roster().Join({rank, static_cast<uint64_t>(rank) + 1, "here"}).ok());
      clients_.push_back(std::make_unique<Client>(*this, rank));
    }
  }

  client::PsClient& client(int rank) { return *clients_[static_cast<size_t>(rank)]; }
  Agree agree() {
    return [this](const std::string& name, uint64_t value) { return AgreeMax(name, value); };
  }
  void SetHeld(bool held) {
    for (const auto& client : clients_) client->SetHeld(held);
  }
  void Break(const absl::Status& failure) {
    for (const auto& client : clients_) client->Break(failure);
  }
  // Requests of all workers that are not served.
  size_t waiting() const {
    size_t waiting = 0;
    for (const auto& client : clients_) waiting += client->waiting();
    return waiting;
  }
  std::vector<Pushed> pushes() const {
    base::MutexLock lock(mu_);
    return pushes_;
  }
  std::vector<Pushed> dense_pushes() const {
    base::MutexLock lock(mu_);
    return dense_pushes_;
  }
  // The first weight of every row of table 0.
  std::map<base::Key, float> rows() const {
    std::map<base::Key, float> rows;
    for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
      job_->sparse(0).ForEachRow(shard, [&](base::Key key, std::span<const float> row) { rows[key] = row[0]; });
    return rows;
  }
  std::vector<float> dense() const {
    std::vector<float> values(static_cast<size_t>(job_->dense().size()));
    job_->dense().Snapshot(values);
    return values;
  }

 private:
  static constexpr int kSparse = 0, kDense = 1;  // lanes

  class Client final : public client::PsClient {
   public:
    Client(InProcessJob& job, int rank) : job_(job), rank_(rank) {}

    int sparse_tables() const override { return hosted().sparse_tables(); }
    int pull_width(int table) const override { return hosted().sparse(table).pull_width(); }
    int push_width(int table) const override { return hosted().sparse(table).push_width(); }
    int64_t dense_size() const override { return hosted().dense().size(); }
    void Pull(const client::StepTag& tag, std::span<const base::TableKeys> keys,
              std::span<const base::RowsView<float>> out, client::Call& call) override {
      lanes_[kSparse].Send(call, [this, tag, keys, out]() -> absl::Status {
        RETURN_IF_ERROR(AwaitTurn(kSparse, tag));
        for (size_t i = 0; i < keys.size(); ++i)
          RETURN_IF_ERROR(hosted().sparse(keys[i].table).Pull(keys[i], tag.kind, out[i]));
        return absl::OkStatus();
      });
    }
    void PullDense(const client::StepTag& tag, std::span<float> out, client::Call& call) override {
      lanes_[kDense].Send(call, [this, tag, out]() -> absl::Status {
        RETURN_IF_ERROR(AwaitTurn(kDense, tag));
        hosted().dense().Snapshot(out);
        return absl::OkStatus();
      });
    }
    void Push(const base::StepGrads& grads, client::Call& call) override {
      Pushed pushed = PushedOf(grads);
      if (!grads.tables.empty()) pushed.rate = grads.tables.front().learning_rate;
      Change(kSparse, PartOf(grads, grads.tables, {}), std::move(pushed), call);
    }
    void PushDense(const base::StepGrads& grads, client::Call& call) override {
      StepCopy copy;
      copy.Assign(grads, dense_size());
      Pushed pushed = PushedOf(grads);
      pushed.dense = copy.dense();
      pushed.rate = grads.dense_learning_rate;
      Change(kDense, PartOf(grads, {}, copy.dense()), std::move(pushed), call);
    }
    void Add(std::span<const base::TableGrads> differences, client::Call& call) override {
      auto part = std::make_shared<server::StepPart>(PartOf({}, differences, {}));
      lanes_[kSparse].Send(call, [this, part] { return Apply(*part); });
    }
    void AddDense(std::span<const float> differences, client::Call& call) override {
      auto part = std::make_shared<server::StepPart>(PartOf({}, {}, differences));
      lanes_[kDense].Send(call, [this, part] { return Apply(*part); });
    }
    void Combine(const client::Rounds& rounds, std::span<const base::TableGrads> differences,
                 client::Call& call) override {
      Combine(kSparse, rounds, PartOf({}, differences, {}), call);
    }
    void CombineDense(const client::Rounds& rounds, std::span<const float> differences, client::Call& call) override {
      Combine(kDense, rounds, PartOf({}, {}, differences), call);
    }
    void BeginPass(const client::StepTag& tag, const base::DataPosition&, client::Call& call) override {
      for (const int lane : {kSparse, kDense})
        lanes_[lane].Send(call, [this, tag, lane] {
          server::SyncStage* const stage = hosted().stage(lane);
          return stage == nullptr ? absl::OkStatus() : stage->Begin(tag.pass, tag.step);
        });
    }
    void LeavePass(const client::StepTag& tag, client::Call& call) override {
      for (const int lane : {kSparse, kDense})
        lanes_[lane].Send(call, [this, tag, lane]() -> absl::Status {
          if (server::SyncStage* const stage = hosted().stage(lane)) return stage->LeavePass(rank_, tag.pass);
          if (server::GeoRounds* const rounds = hosted().rounds(lane))
            return rounds->Leave(rank_, tag.pass, [] { return absl::OkStatus(); });
          return absl::OkStatus();
        });
    }

    void SetHeld(bool held) {
      for (InProcessLane& lane : lanes_) lane.SetHeld(held);
    }
    void Break(const absl::Status& failure) {
      for (InProcessLane& lane : lanes_) lane.Break(failure);
    }
    size_t waiting() const { return lanes_[kSparse].waiting() + lanes_[kDense].waiting(); }

   private:
    server::HostedJob& hosted() const { return *job_.job_; }
    absl::Status AwaitTurn(int lane, const client::StepTag& tag) {
      server::SyncStage* const stage = hosted().stage(lane);
      if (stage == nullptr || tag.kind == base::StepKind::kInfer) return absl::OkStatus();
      return stage->AwaitBefore(tag.step);
    }
    static server::StepPart PartOf(const base::StepGrads& grads, std::span<const base::TableGrads> tables,
                                   std::span<const float> dense) {
      server::StepPart part;
      part.pass = grads.pass;
      part.step = grads.step;
      part.samples = grads.samples;
      part.dense.assign(dense.begin(), dense.end());
      if (!dense.empty()) part.dense_learning_rate = grads.dense_learning_rate;
      for (const base::TableGrads& table : tables) {
        server::TablePart& to = part.tables.emplace_back();
        to.table = table.keys.table;
        to.width = table.grads.width;
        to.named = true;
        to.learning_rate = table.learning_rate;
        to.keys.assign(table.keys.keys.begin(), table.keys.keys.end());
        for (size_t i = 0; i < to.keys.size(); ++i) {
          const float* const row = table.grads.row(static_cast<int64_t>(i));
          to.rows.insert(to.rows.end(), row, row + to.width);
        }
      }
      return part;
    }
    Pushed PushedOf(const base::StepGrads& grads) const {
      Pushed pushed;
      pushed.rank = rank_;
      pushed.step = grads.step;
      pushed.samples = grads.samples;
      pushed.batches.assign(grads.batches.begin(), grads.batches.end());
      if (pushed.batches.empty()) pushed.batches.push_back(grads.batch);
      return pushed;
    }
    // Gradients.
    void Change(int lane, server::StepPart part, Pushed pushed, client::Call& call) {
      auto shared = std::make_shared<server::StepPart>(std::move(part));
      lanes_[lane].Send(call, [this, lane, shared, pushed] {
        job_.Note(lane, pushed);
        if (server::SyncStage* const stage = hosted().stage(lane)) return stage->Add(rank_, std::move(*shared));
        server::SyncStage::Sum sum;
        sum.step = shared->step;
        sum.samples = shared->samples;
        for (const server::TablePart& table : shared->tables) sum.tables.push_back(table.View());
        sum.dense = shared->dense;
        sum.dense_learning_rate = shared->dense_learning_rate;
        return hosted().Apply(sum);
      });
    }
    // Differences, as they are.
    absl::Status Apply(const server::StepPart& part) {
      const table::NanPolicy policy = hosted().spec().nan_policy;
      for (const server::TablePart& table : part.tables)
        RETURN_IF_ERROR(hosted().sparse(table.table).Add(table.View(), policy));
      return part.dense.empty() ? absl::OkStatus() : hosted().dense().Add(part.dense, policy);
    }
    void Combine(int lane, const client::Rounds& rounds, server::StepPart part, client::Call& call) {
      auto shared = std::make_shared<server::StepPart>(std::move(part));
      lanes_[lane].Send(call, [this, lane, rounds, shared] {
        Pushed pushed;
        pushed.rank = rank_;
        pushed.dense = shared->dense;
        pushed.rounds = rounds;
        job_.Note(lane, pushed);
        return hosted().rounds(lane)->Combine(
            rank_, {rounds.pass, rounds.first, rounds.last}, hosted().spec().nan_policy, *shared,
            [] { return absl::OkStatus(); }, [this, shared] { return Apply(*shared); });
      });
    }

    InProcessJob& job_;
    const int rank_;
    InProcessLane lanes_[2];
  };

  void Note(int lane, const Pushed& pushed) {
    base::MutexLock lock(mu_);
    (lane == kSparse ? pushes_ : dense_pushes_).push_back(pushed);
  }
  uint64_t AgreeMax(const std::string& name, uint64_t value) {
    base::MutexLock lock(mu_);
    auto& [came, most] = agreed_[name];
    if (came < clients_.size()) most = std::max(most, value);  // who comes back hears what was agreed on
    ++came;
    agreed_changed_.NotifyAll();
    while (came < clients_.size()) agreed_changed_.Wait(mu_);
    return most;
  }

  std::unique_ptr<server::HostedJob> job_;
  mutable base::Mutex mu_;
  base::CondVar agreed_changed_;
  std::map<std::string, std::pair<size_t, uint64_t>> agreed_ ABSL_GUARDED_BY(mu_);  // who came, and the largest value
  std::vector<Pushed> pushes_ ABSL_GUARDED_BY(mu_);
  std::vector<Pushed> dense_pushes_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace regatta::comm
