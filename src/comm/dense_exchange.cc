#include "comm/dense_exchange.h"

#include <algorithm>

namespace regatta::comm {

DenseExchange::DenseExchange(client::PsClient& client, uint64_t window)
    : client_(client), window_(std::max<uint64_t>(window, 1)), thread_([this] { Run(); }) {}

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

absl::Status DenseExchange::Add(const base::StepGrads& grads) {
  base::MutexLock lock(mu_);
  while (steps_ >= window_ && failure_.ok()) changed_.Wait(mu_);
  RETURN_IF_ERROR(failure_);
  if (grads.dense.empty()) return absl::OkStatus();
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
  meta_.samples = samples + grads.samples;
  ++steps_;
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::Status DenseExchange::Finish() {
  base::MutexLock lock(mu_);
  while ((steps_ > 0 || busy_) && failure_.ok()) changed_.Wait(mu_);
  return failure_;
}

void DenseExchange::Run() {
  while (true) {
    base::StepGrads meta;
    {
      base::MutexLock lock(mu_);
      while (steps_ == 0 && !stopping_) changed_.Wait(mu_);
      if (stopping_) return;
      sending_.swap(sum_);
      meta = meta_;
      steps_ = 0;
      busy_ = true;
      changed_.NotifyAll();
    }
    const absl::Status status = Exchange(meta);
    base::MutexLock lock(mu_);
    busy_ = false;
    if (!status.ok() && failure_.ok()) failure_ = status;
    changed_.NotifyAll();
  }
}

absl::Status DenseExchange::Exchange(const base::StepGrads& meta) {
  const base::DenseGrad piece{0, sending_};
  base::StepGrads grads = meta;
  grads.dense = {&piece, 1};
  client::Call call;
  client_.PushDense(grads, call);
  auto values = std::make_shared<std::vector<float>>(sending_.size());
  client_.PullDense({meta.pass, meta.step, base::StepKind::kTrain}, *values, call);
  RETURN_IF_ERROR(call.Wait());
  base::MutexLock lock(mu_);
  latest_ = std::move(values);
  return absl::OkStatus();
}

}  // namespace regatta::comm
