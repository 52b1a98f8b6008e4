#include "train/pass_meter.h"

#include <algorithm>
#include <utility>

#include "base/elapsed.h"
#include "metrics/byte_codec.h"

namespace regatta::train {
namespace {

constexpr uint32_t kOutputsMagic = 0x314F4D52;  // "RMO1": metrics of outputs that have names

// A piece of bytes behind its length, which is checked.
absl::StatusOr<std::string_view> TakePiece(std::string_view& bytes) {
  metrics::ByteReader in(bytes);
  uint64_t size = 0;
  RETURN_IF_ERROR(in.Get(size));
  if (size > in.left()) return absl::DataLossError("metrics: the bytes end too early");
  const std::string_view piece = bytes.substr(sizeof size, size);
  bytes.remove_prefix(sizeof size + size);
  return piece;
}

void PutPiece(std::string& out, std::string_view piece) {
  metrics::PutBytes(out, static_cast<uint64_t>(piece.size()));
  out.append(piece);
}

std::string SerializeOutputs(const std::vector<OutputMeter>& outputs) {
  std::string bytes;
  metrics::PutBytes(bytes, kOutputsMagic);
  metrics::PutBytes(bytes, static_cast<uint32_t>(outputs.size()));
  for (const OutputMeter& output : outputs) {
    PutPiece(bytes, output.name());
    PutPiece(bytes, output.Serialize());
  }
  return bytes;
}

// `outputs` are empty and say what the bytes must be of.
absl::Status RestoreOutputs(std::string_view bytes, std::vector<OutputMeter>& outputs) {
  metrics::ByteReader in(bytes);
  uint32_t magic = 0, count = 0;
  RETURN_IF_ERROR(in.Get(magic));
  RETURN_IF_ERROR(in.Get(count));
  if (magic != kOutputsMagic || count != outputs.size())
    return absl::DataLossError(absl::StrCat("metrics: not the bytes of metrics of ", outputs.size(), " outputs"));
  bytes.remove_prefix(sizeof magic + sizeof count);
  for (OutputMeter& output : outputs) {
    ASSIGN_OR_RETURN(const std::string_view name, TakePiece(bytes));
    if (name != output.name())
      return absl::DataLossError(absl::StrCat("metrics: not the bytes of the output '", output.name(), "'"));
    ASSIGN_OR_RETURN(const std::string_view counted, TakePiece(bytes));
    RETURN_IF_ERROR(base::Annotate(output.Restore(counted), absl::StrCat("output '", output.name(), "'")));
  }
  if (!bytes.empty()) return absl::DataLossError(absl::StrCat("metrics: ", bytes.size(), " bytes too many"));
  return absl::OkStatus();
}

std::vector<OutputMeter> MetersOf(const NetSpec& spec) {
  std::vector<OutputMeter> outputs;
  for (const OutputSpec& output : spec.outputs) outputs.emplace_back(spec, output);
  return outputs;
}

std::vector<OutputMeter> EmptyLike(const std::vector<OutputMeter>& meters) {
  std::vector<OutputMeter> outputs;
  for (const OutputMeter& meter : meters) outputs.push_back(meter.Empty());
  return outputs;
}

}  // namespace

PassMeter::PassMeter(uint64_t epoch, const NetSpec& spec) : PassMeter(epoch, MetersOf(spec)) {}

PassMeter::PassMeter(uint64_t epoch, std::vector<OutputMeter> outputs) : epoch_(epoch), outputs_(std::move(outputs)) {}

PassMeter PassMeter::Empty(const PassMeter& like) { return {like.epoch_, EmptyLike(like.outputs_)}; }

void PassMeter::Add(const PassObserver::Step& step) {
  const StepResult& r = step.result;
  const auto samples = static_cast<uint64_t>(r.batch->size);
  if (r.batch->label_dim > 0) {
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].Add(r.predictions[i], *r.batch);
  } else {
    unlabelled_ += samples;
  }
  samples_here_ += samples;
  ++sums_.batches;
  sums_.loss += r.loss_sum;
  sums_.weight += r.weight_sum;
  ++interval_.batches;
  interval_.samples += samples;
  interval_.loss += r.loss_sum;
  interval_.weight += r.weight_sum;
  interval_.read_seconds += step.read_seconds;
}

IntervalReport PassMeter::Interval() const {
  const double n = static_cast<double>(std::max<uint64_t>(interval_.batches, 1));
  const double seconds = base::SecondsSince(interval_.since);
  IntervalReport report;
  report.epoch = epoch_;
  report.batches = sums_.batches;
  if (unlabelled_ == 0)
    for (const OutputMeter& output : outputs_) report.outputs.push_back(output.BriefReport());
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
  report.loss = sums_.weight > 0 ? sums_.loss / sums_.weight : 0;
  report.samples_per_second = report.seconds > 0 ? static_cast<double>(samples_here_) / report.seconds : 0;
  report.samples = outputs_.front().samples() + unlabelled_;
  if (unlabelled_ == 0)
    for (const OutputMeter& output : outputs_) report.outputs.push_back(output.Report());
  return report;
}

bool PassMeter::IsOneBinary() const { return outputs_.size() == 1 && outputs_.front().metric() == Metric::kBinary; }

std::string PassMeter::Serialize() const {
  std::string bytes;
  metrics::PutBytes(bytes, sums_);
  return bytes + (IsOneBinary() ? outputs_.front().Serialize() : SerializeOutputs(outputs_));
}

absl::StatusOr<PassMeter::Parsed> PassMeter::Parse(std::string_view bytes) const {
  Parsed parsed{.sums = {}, .outputs = EmptyLike(outputs_)};
  metrics::ByteReader in(bytes);
  if (!in.Get(parsed.sums).ok()) return absl::DataLossError("the metrics of the pass end too early");
  bytes.remove_prefix(sizeof(Sums));
  RETURN_IF_ERROR(IsOneBinary() ? parsed.outputs.front().Restore(bytes) : RestoreOutputs(bytes, parsed.outputs));
  return parsed;
}

absl::Status PassMeter::Restore(std::string_view bytes) {
  ASSIGN_OR_RETURN(Parsed parsed, Parse(bytes));
  sums_ = parsed.sums;
  outputs_ = std::move(parsed.outputs);
  return absl::OkStatus();
}

absl::Status PassMeter::Merge(std::string_view bytes) {
  ASSIGN_OR_RETURN(const Parsed other, Parse(bytes));
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].Merge(other.outputs[i]);
  sums_.batches += other.sums.batches;
  sums_.loss += other.sums.loss;
  sums_.weight += other.sums.weight;
  samples_here_ += other.outputs.front().samples();
  return absl::OkStatus();
}

}  // namespace regatta::train
