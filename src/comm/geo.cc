#include "comm/geo.h"

#include <algorithm>
#include <utility>

#include "base/grouped_keys.h"

namespace regatta::comm {
namespace {

constexpr size_t kChunk = 200'000;  // keys of one exchange's requests

base::TableGrads Rows(const base::TableKeys& keys, const std::vector<float>& rows, int width) {
  base::TableGrads view;
  view.keys = keys;
  view.grads = {rows.data(), width, width};
  return view;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Geo>> Geo::Create(client::PsClient& client, const table::ModelConfig& tables,
                                                 const GeoOptions& options) {
  std::unique_ptr<Geo> geo(new Geo(client, options));
  for (const table::SparseTableConfig& config : tables.sparse) {
    auto replica = std::make_unique<Replica>();
    ASSIGN_OR_RETURN(replica->local, table::SparseTable::Create(config));
    table::SparseTableConfig base = config;
    base.rule = {};
    base.rule.name = "sgd";
    ASSIGN_OR_RETURN(replica->base, table::SparseTable::Create(base));
    geo->replicas_.push_back(std::move(replica));
  }
  ASSIGN_OR_RETURN(geo->dense_, table::DenseTable::Create(tables.dense));
  const std::span<const float> initial = geo->dense_->Values();
  geo->dense_base_.assign(initial.begin(), initial.end());
  for (int t = 0; t < options.threads; ++t) geo->slots_.push_back(std::make_unique<Slot>());
  geo->thread_ = std::thread([geo = geo.get()] { geo->Run(); });
  return geo;
}

Geo::~Geo() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

// Gradients go to the replica.
std::vector<RowWidths> Geo::widths() const {
  std::vector<RowWidths> widths;
  for (const auto& replica : replicas_) widths.push_back({replica->local->pull_width(), replica->local->push_width()});
  return widths;
}

// Nothing is pending when a pass begins: every row and parameter becomes what the servers have.
absl::Status Geo::BeginPass(const base::PassKeys& keys) {
  kind_ = keys.kind;
  left_ = kind_ == base::StepKind::kInfer;
  base::MutexLock exchange(exchange_mu_);
  for (size_t t = 0; t < replicas_.size() && kind_ == base::StepKind::kTrain; ++t) {
    std::vector<base::Key> known;
    {
      base::MutexLock lock(fetch_mu_);
      known = replicas_[t]->known.Copy();
    }
    RETURN_IF_ERROR(ExchangeRows(static_cast<int>(t), known, std::nullopt));
  }
  RETURN_IF_ERROR(ExchangeDense(std::nullopt));
  const base::DataPosition& learnt = keys.learnt;
  if (kind_ == base::StepKind::kTrain) RETURN_IF_ERROR(TellLearnt(learnt));
  base::MutexLock lock(mu_);
  schedule_.Restart(learnt.batches());
  exchanged_ = schedule_.begun();
  due_ = changed_since_ = false;
  learnt_ = learnt;
  return failure_;
}

absl::Status Geo::Prefetch(const base::StepKeys&) { return absl::OkStatus(); }

absl::Status Geo::Pull(const base::StepKeys& keys, base::StepRows* rows) {
  Slot& slot = *slots_[static_cast<size_t>(keys.thread)];
  const auto out = slot.rows.Reserve(client_, keys.tables);
  if (keys.kind == base::StepKind::kInfer) {
    client::Call call;
    client_.Pull({0, keys.step, keys.kind}, keys.tables, out, call);
    RETURN_IF_ERROR(call.Wait());
  } else {
    for (size_t i = 0; i < keys.tables.size(); ++i) {
      Replica& replica = *replicas_[static_cast<size_t>(keys.tables[i].table)];
      RETURN_IF_ERROR(Fetch(replica, keys.tables[i]));
      RETURN_IF_ERROR(replica.local->Pull(keys.tables[i], keys.kind, out[i]));
    }
  }
  slot.dense.resize(static_cast<size_t>(dense_->size()));
  dense_->Snapshot(slot.dense);
  rows->tables = slot.rows.views();
  rows->dense = slot.dense;
  return absl::OkStatus();
}

// Rows that the replica does not have yet. One thread at a time, so that nobody overwrites a row that has been trained.
absl::Status Geo::Fetch(Replica& replica, const base::TableKeys& keys) {
  base::MutexLock lock(fetch_mu_);
  std::vector<base::Key> unknown;
  for (const base::Key key : keys.keys)
    if (!replica.known.Contains(key)) unknown.push_back(key);
  if (unknown.empty()) return absl::OkStatus();
  const base::GroupedKeys grouped(std::move(unknown), keys.table);
  const base::TableKeys view = grouped.view();
  const int width = replica.local->pull_width();
  std::vector<float> rows(grouped.size() * static_cast<size_t>(width));
  const base::RowsView<float> out{rows.data(), width, width};
  client::Call call;
  client_.Pull({}, {&view, 1}, {&out, 1}, call);
  RETURN_IF_ERROR(call.Wait());
  RETURN_IF_ERROR(replica.base->Assign(Rows(view, rows, width)));
  RETURN_IF_ERROR(replica.local->Assign(Rows(view, rows, width)));
  replica.known.Insert(grouped.keys());
  return absl::OkStatus();
}

absl::Status Geo::Commit(const base::StepGrads& grads) {
  for (const base::TableGrads& table : grads.tables)
    RETURN_IF_ERROR(replicas_[static_cast<size_t>(table.keys.table)]->local->CheckLearningRate(table.learning_rate));
  RETURN_IF_ERROR(dense_->CheckLearningRate(grads.dense_learning_rate));
  const table::PushOptions options{.step = grads.step, .samples = grads.samples, .nan_policy = options_.nan_policy};
  for (const base::TableGrads& table : grads.tables)
    RETURN_IF_ERROR(replicas_[static_cast<size_t>(table.keys.table)]->local->Push(table, options));
  if (!grads.dense.empty()) RETURN_IF_ERROR(dense_->Push(grads.dense, options, grads.dense_learning_rate));
  base::MutexLock lock(mu_);
  RETURN_IF_ERROR(failure_);
  for (const base::TableGrads& table : grads.tables)
    replicas_[static_cast<size_t>(table.keys.table)]->touched.Insert(table.keys.keys);
  learnt_.Add(grads.batch);
  changed_since_ = true;
  if (!schedule_.Add()) return absl::OkStatus();
  due_ = true;
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::Status Geo::LeavePass() {
  if (left_) return absl::OkStatus();
  left_ = true;
  RETURN_IF_ERROR(Flush());
  client::Call call;
  uint64_t pass = 0;
  {
    base::MutexLock lock(mu_);
    pass = learnt_.pass;
  }
  client_.LeavePass({pass, 0, base::StepKind::kTrain}, call);
  return call.Wait();
}

absl::Status Geo::Flush() {
  RETURN_IF_ERROR(Exchange(Extent::kAll));
  base::MutexLock lock(mu_);
  return failure_;
}

void Geo::Run() {
  while (true) {
    {
      base::MutexLock lock(mu_);
      while (!stopping_ && !due_) changed_.Wait(mu_);
      if (stopping_) return;
    }
    const absl::Status status = Exchange(Extent::kRound);
    if (status.ok()) continue;
    base::MutexLock lock(mu_);
    if (failure_.ok()) failure_ = status;
    return;
  }
}

// A round of which a part was exchanged is spoken of again.
Geo::Learnt Geo::TakeLearnt(Extent extent) {
  base::MutexLock lock(mu_);
  if (extent == Extent::kRound && !due_) return {};  // a Flush came first
  Learnt learnt{learnt_, {}, std::exchange(changed_since_, false)};
  due_ = false;
  const uint64_t last = std::max(exchanged_, extent == Extent::kAll ? schedule_.begun() : schedule_.whole());
  learnt.rounds = {learnt_.pass, std::min(exchanged_ + 1, last), last};
  exchanged_ = last;
  return learnt;
}

absl::Status Geo::Exchange(Extent extent) {
  base::MutexLock exchange(exchange_mu_);
  const Learnt learnt = TakeLearnt(extent);
  if (!learnt.any) return absl::OkStatus();
  for (size_t t = 0; t < replicas_.size(); ++t) {
    std::vector<base::Key> keys;
    {
      base::MutexLock lock(mu_);
      keys = replicas_[t]->touched.Take();
    }
    RETURN_IF_ERROR(ExchangeRows(static_cast<int>(t), keys, learnt.rounds));
  }
  RETURN_IF_ERROR(ExchangeDense(learnt.rounds));
  return TellLearnt(learnt.position);
}

absl::Status Geo::TellLearnt(const base::DataPosition& learnt) {
  client::Call call;
  client_.BeginPass({learnt.pass, 0, base::StepKind::kTrain}, learnt, call);
  return call.Wait();
}

void Geo::Send(const client::Rounds& rounds, const base::TableGrads& differences, client::Call& call) {
  if (options_.combine == GeoCombine::kCount) return client_.Combine(rounds, {&differences, 1}, call);
  client_.Add({&differences, 1}, call);
}

void Geo::SendDense(const client::Rounds& rounds, std::span<const float> differences, client::Call& call) {
  if (options_.combine == GeoCombine::kCount) return client_.CombineDense(rounds, differences, call);
  client_.AddDense(differences, call);
}

absl::Status Geo::ExchangeRows(int table, std::span<const base::Key> all, const std::optional<client::Rounds>& rounds) {
  Replica& replica = *replicas_[static_cast<size_t>(table)];
  const int width = replica.local->pull_width();
  for (size_t first = 0; first < all.size(); first += kChunk) {
    const std::span<const base::Key> part = all.subspan(first, std::min(kChunk, all.size() - first));
    const base::GroupedKeys chunk({part.begin(), part.end()}, table);
    const base::TableKeys keys = chunk.view();
    const size_t count = chunk.size();
    const size_t floats = count * static_cast<size_t>(width);
    std::vector<float> pending(floats), base(floats), sent(floats), fresh(floats);
    RETURN_IF_ERROR(replica.local->Pull(keys, base::StepKind::kTrain, {pending.data(), width, width}));
    RETURN_IF_ERROR(replica.base->Pull(keys, base::StepKind::kTrain, {base.data(), width, width}));
    for (size_t i = 0; i < floats; ++i) pending[i] -= base[i];
    for (size_t i = 0; i < floats; ++i) sent[i] = share() * pending[i];
    client::Call call;
    if (rounds.has_value()) Send(*rounds, Rows(keys, sent, width), call);
    const base::RowsView<float> out{fresh.data(), width, width};
    client_.Pull({}, {&keys, 1}, {&out, 1}, call);
    RETURN_IF_ERROR(call.Wait());
    // The replica may have gone on meanwhile: it moves by as much as the base does, less what was pending.
    for (size_t i = 0; i < floats; ++i) pending[i] = fresh[i] - base[i] - pending[i];
    RETURN_IF_ERROR(replica.local->Add(Rows(keys, pending, width), table::NanPolicy::kSkip));
    RETURN_IF_ERROR(replica.base->Assign(Rows(keys, fresh, width)));
  }
  return absl::OkStatus();
}

absl::Status Geo::ExchangeDense(const std::optional<client::Rounds>& rounds) {
  const auto size = static_cast<size_t>(dense_->size());
  if (size == 0) return absl::OkStatus();
  std::vector<float> pending(size), sent(size), fresh(size);
  dense_->Snapshot(pending);
  for (size_t i = 0; i < size; ++i) pending[i] -= dense_base_[i];
  for (size_t i = 0; i < size; ++i) sent[i] = share() * pending[i];
  client::Call call;
  if (rounds.has_value()) SendDense(*rounds, sent, call);
  client_.PullDense({}, fresh, call);
  RETURN_IF_ERROR(call.Wait());
  for (size_t i = 0; i < size; ++i) pending[i] = fresh[i] - dense_base_[i] - pending[i];
  RETURN_IF_ERROR(dense_->Add(pending, table::NanPolicy::kSkip));
  dense_base_ = std::move(fresh);
  return absl::OkStatus();
}

}  // namespace regatta::comm
