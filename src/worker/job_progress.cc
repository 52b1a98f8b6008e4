#include "worker/job_progress.h"

#include <algorithm>

namespace regatta::worker {
namespace {

constexpr std::chrono::seconds kWindow(1);

}  // namespace

std::optional<train::ClusterReport> MergeProgress(const std::map<int, client::WorkerProgress>& workers) {
  train::ClusterReport report;
  double loss = 0, weight = 0;
  uint64_t pushes = 0, staleness = 0;
  int training = 0;
  std::optional<train::ClusterReport::Slowest> slowest;
  for (const auto& [rank, progress] : workers) {
    ++report.workers;
    report.samples += progress.samples();
    pushes += progress.pushes();
    staleness += progress.staleness_sum();
    if (!progress.training()) continue;
    ++training;
    report.samples_per_second += progress.samples_per_second();
    loss += progress.loss_sum();
    weight += progress.weight_sum();
    if (!slowest.has_value() || progress.samples_per_second() < slowest->share)
      slowest = {rank, progress.samples_per_second()};
  }
  if (weight <= 0) return std::nullopt;
  report.loss = loss / weight;
  if (pushes > 0) report.staleness = static_cast<double>(staleness) / static_cast<double>(pushes);
  if (training < 2 || report.samples_per_second <= 0) return report;
  slowest->share /= report.samples_per_second / training;
  report.slowest = slowest;
  return report;
}

JobProgress::JobProgress(fleet::WorkerNode& worker) : worker_(worker) {}

void JobProgress::BeginEpoch(uint64_t epoch) {
  progress_.set_epoch(epoch);
  progress_.set_training(true);
  window_ = {};
  worker_.SetProgress(progress_);
}

void JobProgress::Add(const train::PassObserver::Step& step) {
  const auto samples = static_cast<uint64_t>(step.result.batch->size);
  progress_.set_steps(progress_.steps() + 1);
  progress_.set_samples(progress_.samples() + samples);
  window_.samples += samples;
  window_.loss += step.result.loss_sum;
  window_.weight += step.result.weight_sum;
  if (Clock::now() - window_.since >= kWindow) TakeWindow();
}

void JobProgress::EndEpoch() {
  if (window_.samples > 0) TakeWindow();
  progress_.set_training(false);
  worker_.SetProgress(progress_);
}

void JobProgress::TakeWindow() {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - window_.since).count();
  progress_.set_samples_per_second(seconds > 0 ? static_cast<double>(window_.samples) / seconds : 0);
  progress_.set_loss_sum(window_.loss);
  progress_.set_weight_sum(window_.weight);
  const Staleness all = ReadStaleness();
  progress_.set_pushes(all.pushes - told_.pushes);
  progress_.set_staleness_sum(all.sum - told_.sum);
  int64_t in_flight = 0;
  for (int server = 0; server < worker_.servers(); ++server)
    in_flight += worker_.traffic(server).pushes_in_flight.load(std::memory_order_relaxed);
  progress_.set_pushes_in_flight(static_cast<uint32_t>(std::max<int64_t>(in_flight, 0)));
  told_ = all;
  window_ = {};
  worker_.SetProgress(progress_);
}

JobProgress::Staleness JobProgress::ReadStaleness() const {
  Staleness all;
  for (int server = 0; server < worker_.servers(); ++server) {
    all.pushes += worker_.traffic(server).staleness.count();
    all.sum += worker_.traffic(server).staleness.sum();
  }
  return all;
}

std::optional<train::ClusterReport> JobProgress::Cluster() const {
  if (!worker_.first()) return std::nullopt;
  std::map<int, client::WorkerProgress> workers = worker_.progress();
  if (workers.empty()) return std::nullopt;  // no heartbeat has come back yet
  workers[worker_.rank()] = progress_;       // newer than what went around by the server
  return MergeProgress(workers);
}

}  // namespace regatta::worker
