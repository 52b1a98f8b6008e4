#include "train/pass_meter.h"

#include <cstring>

#include "base/elapsed.h"

namespace regatta::train {
namespace {

// What Serialize puts before the metrics.
struct Header {
  uint64_t batches;
  double loss;
  double weight;
};

}  // namespace

void PassMeter::Add(const PassObserver::Step& step) {
  const StepResult& r = step.result;
  metrics_.Add(r.predictions, r.batch->labels, r.batch->weights, r.batch->users);
  ++batches_;
  samples_here_ += r.batch->size;
  loss_ += r.loss_sum;
  weight_ += r.weight_sum;
  ++interval_.batches;
  interval_.samples += r.batch->size;
  interval_.loss += r.loss_sum;
  interval_.weight += r.weight_sum;
  interval_.read_seconds += step.read_seconds;
}

IntervalReport PassMeter::Interval() const {
  const double n = static_cast<double>(std::max<uint64_t>(interval_.batches, 1));
  const double seconds = base::SecondsSince(interval_.since);
  IntervalReport report;
  report.epoch = epoch_;
  report.batches = batches_;
  report.auc = metrics_.AucValue();
  report.loss = interval_.weight > 0 ? interval_.loss / interval_.weight : 0;
  report.reader_seconds = interval_.read_seconds / n;
  report.batch_seconds = seconds / n;
  report.samples = static_cast<double>(interval_.samples) / n;
  report.samples_per_second = seconds > 0 ? static_cast<double>(interval_.samples) / seconds : 0;
  return report;
}

IntervalReport PassMeter::TakeInterval() {
  IntervalReport report = Interval();
  interval_ = Costs();
  return report;
}

EpochReport PassMeter::Epoch(const char* what) const {
  EpochReport report;
  report.what = what;
  report.epoch = epoch_;
  report.seconds = base::SecondsSince(start_);
  report.loss = weight_ > 0 ? loss_ / weight_ : 0;
  report.samples_per_second = report.seconds > 0 ? static_cast<double>(samples_here_) / report.seconds : 0;
  report.metrics = metrics_.Report();
  return report;
}

std::string PassMeter::Serialize() const {
  const Header header{batches_, loss_, weight_};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes + metrics_.Serialize();
}

absl::Status PassMeter::Restore(std::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof header) return absl::DataLossError("the saved metrics of the pass end too early");
  std::memcpy(&header, bytes.data(), sizeof header);
  ASSIGN_OR_RETURN(metrics_, metrics::BinaryMetrics::Parse(bytes.substr(sizeof header)));
  batches_ = header.batches;
  loss_ = header.loss;
  weight_ = header.weight;
  return absl::OkStatus();
}

absl::Status PassMeter::Merge(std::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof header) return absl::DataLossError("the serialised metrics of the pass end too early");
  std::memcpy(&header, bytes.data(), sizeof header);
  ASSIGN_OR_RETURN(const metrics::BinaryMetrics other, metrics::BinaryMetrics::Parse(bytes.substr(sizeof header)));
  metrics_.Merge(other);
  batches_ += header.batches;
  loss_ += header.loss;
  weight_ += header.weight;
  samples_here_ += other.samples();
  return absl::OkStatus();
}

}  // namespace regatta::train
