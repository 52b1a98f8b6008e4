#include "worker/run_metrics.h"

#include <algorithm>

#include "table/table_metrics.h"
#include "train/pass_meter.h"

namespace regatta::worker {
namespace {

uint64_t Nanos(double seconds) { return static_cast<uint64_t>(std::max(seconds, 0.0) * 1e9); }

}  // namespace

RunMetrics::RunMetrics(const train::NetSpec& spec) : outputs_(train::PassMeter(0, spec).Interval().outputs) {}

void RunMetrics::Show(const fleet::EmbeddedTables* tables) {
  base::MutexLock lock(mu_);
  tables_ = tables;
}

void RunMetrics::Show(const fleet::WorkerNode* fleet) {
  base::MutexLock lock(mu_);
  fleet_ = fleet;
}

void RunMetrics::Show(const data::Dataset* dataset) {
  base::MutexLock lock(mu_);
  dataset_ = dataset;
}

void RunMetrics::Add(const train::PassObserver::Step& step) {
  const train::StepResult& result = step.result;
  steps_.Add();
  samples_.Add(static_cast<uint64_t>(result.batch->size));
  bad_rows_.Add(result.bad_rows);
  bad_dense_.Add(result.bad_dense ? 1 : 0);
  read_.Record(Nanos(step.read_seconds));
  pull_.Record(Nanos(result.pull_seconds));
  compute_.Record(Nanos(step.step_seconds - result.pull_seconds - result.commit_seconds));
  commit_.Record(Nanos(result.commit_seconds));
  step_.Record(Nanos(step.read_seconds + step.step_seconds));
  epoch_.store(step.position.pass, std::memory_order_relaxed);
}

void RunMetrics::Report(const train::IntervalReport& report) {
  loss_.store(report.loss, std::memory_order_relaxed);
  samples_per_second_.store(report.samples_per_second, std::memory_order_relaxed);
  base::MutexLock lock(mu_);
  outputs_ = report.outputs;
}

void RunMetrics::Collect(metrics::Exposition& out) const {
  CollectSteps(out);
  base::MutexLock lock(mu_);
  CollectOutputs(outputs_, out);
  if (dataset_ != nullptr) CollectData(dataset_->progress(), out);
  if (fleet_ != nullptr) CollectTraffic(*fleet_, out);
  if (tables_ == nullptr) return;
  for (const table::SparseTable* table : tables_->sparse()) table::CollectTable(*table, out);
  table::CollectTable(*tables_->dense(), out);
}

void RunMetrics::CollectSteps(metrics::Exposition& out) const {
  out.Counter("regatta_worker_steps_total", "Batches trained on.", static_cast<double>(steps_.value()));
  out.Counter("regatta_worker_samples_total", "Samples trained on.", static_cast<double>(samples_.value()));
  out.Counter("regatta_worker_bad_gradients_total", "Gradients with NaN or Inf, of rows and of the dense parameters.",
              static_cast<double>(bad_rows_.value()), {{"of", "row"}});
  out.Counter("regatta_worker_bad_gradients_total", "", static_cast<double>(bad_dense_.value()), {{"of", "dense"}});
  out.Gauge("regatta_worker_epoch", "The epoch under way.", static_cast<double>(epoch_.load()));
  out.Gauge("regatta_worker_loss", "Mean loss of the last report's interval.", loss_.load());
  out.Gauge("regatta_worker_samples_per_second", "Speed of the last report's interval.", samples_per_second_.load());
  const struct {
    const char* name;
    const metrics::Histogram& seconds;
  } kParts[] = {{"read", read_}, {"pull", pull_}, {"compute", compute_}, {"commit", commit_}};
  out.Seconds("regatta_worker_step_seconds", "A step of one thread, from asking for its batch to its commit.", step_);
  for (const auto& part : kParts)
    out.Seconds("regatta_worker_step_part_seconds",
                "Parts of a step: waiting for its batch, pulling rows, the model, committing.", part.seconds,
                {{"part", part.name}});
}

// One output has no label; of several, each has its name.
void RunMetrics::CollectOutputs(std::span<const train::OutputReport> outputs, metrics::Exposition& out) {
  for (const train::OutputReport& output : outputs) {
    const metrics::Labels labels = outputs.size() == 1 ? metrics::Labels{} : metrics::Labels{{"output", output.name}};
    if (const metrics::BinaryReport* const m = output.binary()) {
      out.Gauge("regatta_worker_auc", "AUC of the epoch's samples up to the last report.", m->auc.value_or(NAN),
                labels);
    } else {
      const metrics::RegressionReport& r = *output.regression();
      out.Gauge("regatta_worker_mae", "Mean absolute error of the epoch's samples up to the last report.",
                r.samples > 0 ? r.mae : NAN, labels);
      out.Gauge("regatta_worker_rmse", "Root mean squared error of the epoch's samples up to the last report.",
                r.samples > 0 ? r.rmse : NAN, labels);
    }
  }
}

void RunMetrics::CollectTraffic(const fleet::WorkerNode& fleet, metrics::Exposition& out) {
  for (int server = 0; server < fleet.servers(); ++server) {
    const client::LaneTraffic& traffic = fleet.traffic(server);
    const std::string index = absl::StrCat(server);
    out.Counter("regatta_worker_bytes_total", "Bytes of lanes, by server.",
                static_cast<double>(traffic.bytes_out.value()), {{"server", index}, {"direction", "out"}});
    out.Counter("regatta_worker_bytes_total", "", static_cast<double>(traffic.bytes_in.value()),
                {{"server", index}, {"direction", "in"}});
    out.Seconds("regatta_worker_request_seconds", "From a request to its reply, by server.", traffic.pull,
                {{"server", index}, {"verb", "pull"}});
    out.Seconds("regatta_worker_request_seconds", "", traffic.push, {{"server", index}, {"verb", "push"}});
    out.Gauge("regatta_worker_pushes_in_flight", "Pushes that the server has not acknowledged.",
              static_cast<double>(std::max<int64_t>(traffic.pushes_in_flight.load(std::memory_order_relaxed), 0)),
              {{"server", index}});
    out.Counts("regatta_worker_staleness_updates",
               "Async, half_async: updates of a lane between a step's pull and its push, as the server counts them.",
               traffic.staleness, {{"server", index}});
  }
}

void RunMetrics::CollectData(const data::Progress& progress, metrics::Exposition& out) {
  out.Gauge("regatta_data_lines", "Lines read in the epoch under way, bad ones included.",
            static_cast<double>(progress.samples + progress.bad_lines));
  out.Gauge("regatta_data_bad_lines", "Bad lines of the epoch under way.", static_cast<double>(progress.bad_lines));
  out.Gauge("regatta_data_share", "Share of the epoch's bytes that is read.",
            progress.bytes_total == 0
                ? 0
                : static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total));
  out.Gauge("regatta_data_wait_seconds", "That batches of the epoch under way waited for the readers.",
            progress.wait_seconds);
}

}  // namespace regatta::worker
