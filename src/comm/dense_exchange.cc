#include "comm/dense_exchange.h"

#include <algorithm>

namespace regatta::comm {

DenseExchange::DenseExchange(client::PsClient& client, const DenseExchangeOptions& options,
                             const std::optional<Resumed>& resumed)
    : client_(client), options_(options), resumed_(resumed), thread_([this] { Run(); }) {}

DenseExchange::~DenseExchange() {
  {
    base::MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::Status DenseExchange::Start(base::StepKind kind) {
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(client_.dense_size()));
  client::Call call;
  client_.PullDense({0, 0, kind}, *values, call);
  RETURN_IF_ERROR(call.Wait());
  base::MutexLock lock(mu_);
  latest_ = std::move(values);
  return failure_;
}

std::shared_ptr<const std::vector<float>> DenseExchange::Latest() {
  base::MutexLock lock(mu_);
  return latest_;
}

DenseExchange::DenseState DenseExchange::DenseStateOf(const base::StepGrads& grads) const {
  if (!resumed_.has_value() || resumed_->pass != grads.pass) return DenseState::kNone;
  const uint64_t batch = grads.batches.empty() ? grads.batch : grads.batches.front();
  size_t have = 0;
  for (const base::DataPosition& position : resumed_->dense) have += position.Contains(batch) ? 1 : 0;
  return have == 0 ? DenseState::kNone : have == resumed_->dense.size() ? DenseState::kAll : DenseState::kSome;
}

absl::Status DenseExchange::Add(const base::StepGrads& grads) {
  if (grads.dense.empty()) return absl::OkStatus();
  switch (DenseStateOf(grads)) {
    case DenseState::kNone:
      break;
    case DenseState::kAll:
      return absl::OkStatus();
    case DenseState::kSome: {  // alone, so that the servers which have it can tell
      client::Call call;
      client_.PushDense(grads, call);
      return call.Wait();
    }
  }
  base::MutexLock lock(mu_);
  while (!MayAddLocked(grads) && failure_.ok()) changed_.Wait(mu_);
  RETURN_IF_ERROR(failure_);
  const bool first = steps_ == 0;
  sum_.resize(static_cast<size_t>(client_.dense_size()));
  for (const base::DenseGrad& piece : grads.dense) {
    float* sum = sum_.data() + piece.offset;
    if (first) {
      std::copy(piece.values.begin(), piece.values.end(), sum);
    } else {
      for (size_t i = 0; i < piece.values.size(); ++i) sum[i] += piece.values[i];
    }
  }
  const uint32_t samples = first ? 0 : meta_.samples;
  meta_.step = grads.step;
  meta_.pass = grads.pass;
  meta_.batch = grads.batch;
  meta_.dense_learning_rate = grads.dense_learning_rate;
  meta_.samples = samples + grads.samples;
  if (first) batches_.clear();
  batches_.insert(batches_.end(), grads.batches.begin(), grads.batches.end());
  if (grads.batches.empty()) batches_.push_back(grads.batch);
  ++steps_;
  changed_.NotifyAll();
  return absl::OkStatus();
}

// If the sum has another rate it is sent first.
bool DenseExchange::MayAddLocked(const base::StepGrads& grads) {
  if (steps_ > 0 && meta_.dense_learning_rate != grads.dense_learning_rate && !closed_) {
    closed_ = true;
    changed_.NotifyAll();
  }
  return !closed_ && steps_ < std::max(options_.window, options_.merge);
}

absl::Status DenseExchange::Finish() {
  base::MutexLock lock(mu_);
  flushing_ = true;
  changed_.NotifyAll();
  while ((steps_ > 0 || busy_) && failure_.ok()) changed_.Wait(mu_);
  flushing_ = false;
  return failure_;
}

void DenseExchange::Run() {
  while (true) {
    base::StepGrads meta;
    {
      base::MutexLock lock(mu_);
      while (!stopping_ && (steps_ == 0 || (steps_ < options_.merge && !flushing_ && !closed_))) changed_.Wait(mu_);
      if (stopping_) return;
      sending_.swap(sum_);
      sending_batches_.swap(batches_);
      meta = meta_;
      since_fetch_ += steps_;
      steps_ = 0;
      closed_ = false;
      busy_ = true;
      changed_.NotifyAll();
    }
    absl::Status status = Push(meta);
    if (status.ok() && since_fetch_ >= options_.fetch) status = Fetch(meta);
    base::MutexLock lock(mu_);
    busy_ = false;
    if (!status.ok() && failure_.ok()) failure_ = status;
    changed_.NotifyAll();
  }
}

absl::Status DenseExchange::Push(const base::StepGrads& meta) {
  const base::DenseGrad piece{0, sending_};
  base::StepGrads grads = meta;
  grads.dense = {&piece, 1};
  std::sort(sending_batches_.begin(), sending_batches_.end());
  grads.batches = sending_batches_;
  client::Call call;
  client_.PushDense(grads, call);
  return call.Wait();
}

absl::Status DenseExchange::Fetch(const base::StepGrads& meta) {
  since_fetch_ = 0;
  auto values = std::make_shared<std::vector<float>>(sending_.size());
  client::Call call;
  client_.PullDense({meta.pass, meta.step, base::StepKind::kTrain}, *values, call);
  RETURN_IF_ERROR(call.Wait());
  base::MutexLock lock(mu_);
  latest_ = std::move(values);
  return absl::OkStatus();
}

}  // namespace regatta::comm
