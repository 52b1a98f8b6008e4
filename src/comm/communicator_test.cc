// The interface carries modes that are nothing like local: sync (steps of several workers become one update) and geo
// (a replica that exchanges differences), each written here in one process against the same tables.
#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "base/random.h"
#include "client/local_client.h"
#include "comm/local.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::comm {
namespace {

using base::Key;

constexpr int kDim = 4;
constexpr int kDenseSize = 6;

struct Tables {
  explicit Tables(const std::string& rule) {
    table::RuleConfig config;
    config.name = rule;
    config.learning_rate = rule == "sgd" ? 1.0 : 0.05;
    table::SparseTableConfig sparse_config;
    sparse_config.name = "t";
    sparse_config.dim = kDim;
    sparse_config.rule = config;
    auto made = table::SparseTable::Create(sparse_config);
    EXPECT_TRUE(made.ok()) << made.status();
    sparse = *std::move(made);
    table::DenseTableConfig dense_config;
    dense_config.parameters = {{"w", {kDenseSize}, {"uniform", -1, 1}}};
    dense_config.rule = config;
    auto dense_made = table::DenseTable::Create(dense_config);
    EXPECT_TRUE(dense_made.ok()) << dense_made.status();
    dense = *std::move(dense_made);
    client = std::make_unique<client::LocalClient>(std::vector<table::SparseTable*>{sparse.get()}, dense.get(),
                                                   table::NanPolicy::kAbort);
  }

  std::map<Key, std::vector<float>> Rows() const {
    std::map<Key, std::vector<float>> rows;
    for (uint32_t shard = 0; shard < base::kVirtualShards; ++shard)
      sparse->ForEachRow(shard, [&](Key key, std::span<const float> row) { rows[key] = {row.begin(), row.end()}; });
    return rows;
  }
  std::vector<float> Dense() const { return {dense->Values().begin(), dense->Values().end()}; }

  std::unique_ptr<table::SparseTable> sparse;
  std::unique_ptr<table::DenseTable> dense;
  std::unique_ptr<client::LocalClient> client;
};

// Distinct keys grouped by shard, with storage.
struct Grouped {
  explicit Grouped(const std::map<Key, std::vector<float>>& rows) {
    std::map<std::pair<uint32_t, Key>, const std::vector<float>*> order;
    for (const auto& [key, row] : rows) order[{base::ShardOf(key), key}] = &row;
    shard_begin.assign(base::kVirtualShards + 1, 0);
    for (const auto& [place, row] : order) {
      keys.push_back(place.second);
      values.insert(values.end(), row->begin(), row->end());
      ++shard_begin[place.first + 1];
    }
    for (int s = 0; s < base::kVirtualShards; ++s) shard_begin[s + 1] += shard_begin[s];
  }
  base::TableKeys Keys() const { return {0, keys, shard_begin}; }
  base::TableGrads Grads() const {
    return {.keys = Keys(), .grads = {values.data(), kDim, kDim}, .slot = {}, .show = {}, .click = {}};
  }

  std::vector<Key> keys;
  std::vector<uint32_t> shard_begin;
  std::vector<float> values;
};

// What one step of one worker brings, copied out of its views.
struct StepCopy {
  explicit StepCopy(const base::StepGrads& grads) : samples(grads.samples) {
    const base::TableGrads& t = grads.tables[0];
    for (size_t i = 0; i < t.keys.keys.size(); ++i)
      sparse[t.keys.keys[i]].assign(t.grads.row(i), t.grads.row(i) + kDim);
    for (const base::DenseGrad& piece : grads.dense) dense.assign(piece.values.begin(), piece.values.end());
  }
  StepCopy() = default;
  void Add(const StepCopy& other) {
    samples += other.samples;
    for (const auto& [key, row] : other.sparse) {
      std::vector<float>& sum = sparse.try_emplace(key, kDim, 0.0f).first->second;
      for (int j = 0; j < kDim; ++j) sum[j] += row[j];
    }
    dense.resize(kDenseSize, 0.0f);
    for (int j = 0; j < kDenseSize; ++j) dense[j] += other.dense[j];
  }
  absl::Status PushTo(client::PsClient& client, uint64_t step) const {
    const Grouped grouped(sparse);
    const base::TableGrads table = grouped.Grads();
    const base::DenseGrad piece{0, dense};
    return client.Push({.step = step, .samples = samples, .tables = {&table, 1}, .dense = {&piece, 1}});
  }

  uint32_t samples = 0;
  std::map<Key, std::vector<float>> sparse;
  std::vector<float> dense;
};

// The server's side of sync: stages a step until every worker that is still there has brought it.
class SyncStage {
 public:
  SyncStage(client::PsClient& client, int workers) : client_(client), present_(workers, true) {}

  absl::Status Add(int rank, uint64_t step, StepCopy grads) {
    base::MutexLock lock(mu_);
    staged_[step][rank] = std::move(grads);
    return ApplyWhatIsComplete();
  }
  absl::Status Leave(int rank) {
    base::MutexLock lock(mu_);
    present_[rank] = false;
    return ApplyWhatIsComplete();
  }
  void AwaitApplied(uint64_t step) {
    base::MutexLock lock(mu_);
    while (applied_ < step) changed_.Wait(mu_);
  }

 private:
  absl::Status ApplyWhatIsComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (auto it = staged_.find(applied_); it != staged_.end(); it = staged_.find(applied_)) {
      for (size_t rank = 0; rank < present_.size(); ++rank)
        if (present_[rank] && !it->second.contains(static_cast<int>(rank))) return absl::OkStatus();
      StepCopy sum;
      for (const auto& [rank, grads] : it->second) sum.Add(grads);  // in rank order
      RETURN_IF_ERROR(sum.PushTo(client_, applied_));
      staged_.erase(it);
      ++applied_;
      changed_.NotifyAll();
    }
    return absl::OkStatus();
  }

  client::PsClient& client_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::vector<bool> present_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, std::map<int, StepCopy>> staged_ ABSL_GUARDED_BY(mu_);
  uint64_t applied_ ABSL_GUARDED_BY(mu_) = 0;  // steps below it are in the tables
};

class Sync : public Communicator {
 public:
  Sync(client::LocalClient& client, SyncStage& stage, int rank) : pulls_(client, 2), stage_(stage), rank_(rank) {}
  absl::Status BeginPass(const base::PassKeys& keys) override { return pulls_.BeginPass(keys); }
  absl::Status Prefetch(const base::StepKeys& keys) override { return pulls_.Prefetch(keys); }
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override {
    stage_.AwaitApplied(keys.step);
    return pulls_.Pull(keys, rows);
  }
  absl::Status Commit(const base::StepGrads& grads) override { return stage_.Add(rank_, grads.step, StepCopy(grads)); }
  absl::Status EndPass() override { return stage_.Leave(rank_); }

 private:
  Local pulls_;  // two slots, so that a snapshot of the dense parameters is pulled
  SyncStage& stage_;
  const int rank_;
};

// Trains on a replica with plain SGD; every `interval` steps it sends what it has not sent yet, divided by the number
// of workers, and takes the server's values as its new base. Invariant: local = base + pending.
class Geo : public Communicator {
 public:
  Geo(client::LocalClient& server, int workers, uint64_t interval)
      : server_(server), workers_(workers), interval_(interval) {}

  absl::Status BeginPass(const base::PassKeys&) override {
    dense_base_.resize(kDenseSize);
    dense_pending_.assign(kDenseSize, 0.0f);
    return server_.PullDense(dense_base_);
  }
  absl::Status Prefetch(const base::StepKeys&) override { return absl::OkStatus(); }
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override {
    const base::TableKeys& table = keys.tables[0];
    std::map<Key, std::vector<float>> unknown;
    for (Key key : table.keys)
      if (!base_.contains(key)) unknown[key].resize(kDim);
    RETURN_IF_ERROR(Fetch(unknown));
    out_.clear();
    for (Key key : table.keys)
      for (int j = 0; j < kDim; ++j) out_.push_back(base_[key][j] + Pending(key)[j]);
    dense_out_.resize(kDenseSize);
    for (int j = 0; j < kDenseSize; ++j) dense_out_[j] = dense_base_[j] + dense_pending_[j];
    view_ = {out_.data(), kDim, kDim};
    rows->tables = {&view_, 1};
    rows->dense = dense_out_;
    return absl::OkStatus();
  }
  absl::Status Commit(const base::StepGrads& grads) override {
    const StepCopy step(grads);
    for (const auto& [key, row] : step.sparse)
      for (int j = 0; j < kDim; ++j) Pending(key)[j] -= 0.1f * row[j] / static_cast<float>(step.samples);
    for (int j = 0; j < kDenseSize; ++j) dense_pending_[j] -= 0.1f * step.dense[j] / static_cast<float>(step.samples);
    for (const auto& [key, row] : step.sparse) learnt_.insert(key);
    return (grads.step + 1) % interval_ == 0 ? Exchange(1.0f / static_cast<float>(workers_)) : absl::OkStatus();
  }
  absl::Status EndPass() override { return Exchange(1.0f); }

 private:
  std::vector<float>& Pending(Key key) { return pending_.try_emplace(key, kDim, 0.0f).first->second; }
  absl::Status Fetch(const std::map<Key, std::vector<float>>& keys) {
    Grouped grouped(keys);
    RETURN_IF_ERROR(server_.PullRows(grouped.Keys(), base::StepKind::kTrain, {grouped.values.data(), kDim, kDim}));
    for (size_t i = 0; i < grouped.keys.size(); ++i)
      base_[grouped.keys[i]].assign(&grouped.values[i * kDim], &grouped.values[i * kDim] + kDim);
    return absl::OkStatus();
  }
  absl::Status Exchange(float share) {
    StepCopy sent;  // the server's rule is SGD with learning rate 1, so a gradient of −delta adds delta
    sent.samples = 1;
    for (Key key : learnt_) {
      std::vector<float>& pending = Pending(key);
      for (int j = 0; j < kDim; ++j) sent.sparse[key].push_back(-share * pending[j]);
      for (int j = 0; j < kDim; ++j) pending[j] += sent.sparse[key][j];
    }
    for (int j = 0; j < kDenseSize; ++j) {
      sent.dense.push_back(-share * dense_pending_[j]);
      dense_pending_[j] += sent.dense[j];
    }
    RETURN_IF_ERROR(sent.PushTo(server_, 0));
    RETURN_IF_ERROR(Fetch(base_));
    return server_.PullDense(dense_base_);
  }

  client::LocalClient& server_;
  const int workers_;
  const uint64_t interval_;
  std::map<Key, std::vector<float>> base_, pending_;
  std::set<Key> learnt_;
  std::vector<float> dense_base_, dense_pending_, out_, dense_out_;
  base::RowsView<const float> view_;
};

// A worker's step: keys and gradients are functions of (rank, step) and of what was pulled.
absl::Status RunStep(Communicator& comm, int rank, uint64_t step) {
  base::Rng rng(base::Combine64(rank, step));
  std::map<Key, std::vector<float>> wanted;
  while (wanted.size() < 20) wanted[rng.Below(50)].resize(kDim);
  Grouped grouped(wanted);
  const base::TableKeys keys = grouped.Keys();
  base::StepRows rows;
  RETURN_IF_ERROR(comm.Prefetch({.step = step, .tables = {&keys, 1}}));
  RETURN_IF_ERROR(comm.Pull({.step = step, .tables = {&keys, 1}}, &rows));
  for (size_t i = 0; i < grouped.keys.size(); ++i)
    for (int j = 0; j < kDim; ++j)
      grouped.values[i * kDim + j] = rows.tables[0].row(i)[j] + static_cast<float>(rng.Uniform());
  std::vector<float> dense(rows.dense.begin(), rows.dense.end());
  for (float& g : dense) g += static_cast<float>(rng.Uniform());
  const base::TableGrads table = grouped.Grads();
  const base::DenseGrad piece{0, dense};
  return comm.Commit({.step = step,
                      .samples = static_cast<uint32_t>(10 + rank),
                      .tables = {&table, 1},
                      .dense = {&piece, 1},
                      .batch = step});
}

void RunWorker(Communicator& comm, int rank, uint64_t steps) {
  ASSERT_TRUE(comm.BeginPass({}).ok());
  for (uint64_t step = 0; step < steps; ++step) ASSERT_TRUE(RunStep(comm, rank, step).ok());
  ASSERT_TRUE(comm.EndPass().ok());
}

// Catches what a worker commits instead of applying it: one process accumulating the same micro-batches.
class Recorder : public Communicator {
 public:
  explicit Recorder(client::LocalClient& client) : pulls_(client, 2) {}
  absl::Status BeginPass(const base::PassKeys&) override { return absl::OkStatus(); }
  absl::Status Prefetch(const base::StepKeys&) override { return absl::OkStatus(); }
  absl::Status Pull(const base::StepKeys& keys, base::StepRows* rows) override { return pulls_.Pull(keys, rows); }
  absl::Status Commit(const base::StepGrads& grads) override {
    last = StepCopy(grads);
    return absl::OkStatus();
  }
  absl::Status EndPass() override { return absl::OkStatus(); }
  StepCopy last;

 private:
  Local pulls_;
};

TEST(Communicator, SyncEqualsOneProcessAccumulatingInRankOrder) {
  const std::vector<uint64_t> steps{12, 7, 12};  // worker 1 leaves early; the rest go on
  Tables cluster("adam");
  SyncStage stage(*cluster.client, 3);
  std::vector<std::unique_ptr<Sync>> comms;
  std::vector<std::thread> workers;
  for (int rank = 0; rank < 3; ++rank) comms.push_back(std::make_unique<Sync>(*cluster.client, stage, rank));
  for (int rank = 0; rank < 3; ++rank) workers.emplace_back([&, rank] { RunWorker(*comms[rank], rank, steps[rank]); });
  for (std::thread& worker : workers) worker.join();

  Tables alone("adam");
  Recorder recorder(*alone.client);
  for (uint64_t step = 0; step < 12; ++step) {
    StepCopy sum;
    for (int rank = 0; rank < 3; ++rank) {
      if (step >= steps[rank]) continue;
      ASSERT_TRUE(RunStep(recorder, rank, step).ok());
      sum.Add(recorder.last);
    }
    ASSERT_TRUE(sum.PushTo(*alone.client, step).ok());
  }
  EXPECT_EQ(cluster.Rows(), alone.Rows());
  EXPECT_EQ(cluster.Dense(), alone.Dense());
  EXPECT_FALSE(cluster.Rows().empty());
}

TEST(Communicator, GeoLeavesTheServerWithTheSumOfEveryWorkersChanges) {
  Tables server("sgd");
  const std::vector<float> dense_before = server.Dense();
  std::vector<std::unique_ptr<Geo>> comms;
  std::vector<std::thread> workers;
  for (int rank = 0; rank < 2; ++rank) comms.push_back(std::make_unique<Geo>(*server.client, 2, 3));
  for (int rank = 0; rank < 2; ++rank) workers.emplace_back([&, rank] { RunWorker(*comms[rank], rank, 10); });
  for (std::thread& worker : workers) worker.join();
  EXPECT_FALSE(server.Rows().empty());
  // After EndPass nothing is pending: a fresh worker pulls exactly what the server holds.
  Geo fresh(*server.client, 2, 3);
  ASSERT_TRUE(fresh.BeginPass({}).ok());
  Grouped all(server.Rows());
  const base::TableKeys keys = all.Keys();
  base::StepRows rows;
  ASSERT_TRUE(fresh.Pull({.tables = {&keys, 1}}, &rows).ok());
  for (size_t i = 0; i < all.keys.size(); ++i)
    for (int j = 0; j < kDim; ++j) EXPECT_EQ(rows.tables[0].row(i)[j], all.values[i * kDim + j]);
  EXPECT_NE(server.Dense(), dense_before);
}

// With one worker and an exchange after every step geo is plain SGD, to rounding.
TEST(Communicator, GeoOfOneWorkerEqualsSgd) {
  Tables server("sgd");
  Geo geo(*server.client, 1, 1);
  RunWorker(geo, 0, 15);

  Tables alone("sgd");
  Recorder recorder(*alone.client);
  for (uint64_t step = 0; step < 15; ++step) {
    ASSERT_TRUE(RunStep(recorder, 0, step).ok());
    for (auto& [key, row] : recorder.last.sparse)
      for (float& g : row) g *= 0.1f;
    for (float& g : recorder.last.dense) g *= 0.1f;
    ASSERT_TRUE(recorder.last.PushTo(*alone.client, step).ok());
  }
  const auto want = alone.Rows(), got = server.Rows();
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [key, row] : want)
    for (size_t j = 0; j < row.size(); ++j) EXPECT_NEAR(got.at(key)[j], row[j], 1e-5) << key;
  for (int j = 0; j < kDenseSize; ++j) EXPECT_NEAR(server.Dense()[j], alone.Dense()[j], 1e-5);
}

TEST(Local, OneThreadSeesTheDenseParametersInPlaceAndManySeeSnapshots) {
  Tables tables("sgd");
  Local one(*tables.client, 1), two(*tables.client, 2);
  base::StepRows rows;
  ASSERT_TRUE(one.Pull({}, &rows).ok());
  EXPECT_EQ(rows.dense.data(), tables.dense->Values().data());
  ASSERT_TRUE(two.Pull({.step = 0, .thread = 1, .kind = base::StepKind::kTrain, .tables = {}}, &rows).ok());
  EXPECT_NE(rows.dense.data(), tables.dense->Values().data());
  EXPECT_TRUE(std::equal(rows.dense.begin(), rows.dense.end(), tables.dense->Values().begin()));
}

}  // namespace
}  // namespace regatta::comm
