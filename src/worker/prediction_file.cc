#include "worker/prediction_file.h"

#include "absl/strings/str_format.h"

namespace regatta::worker {

absl::StatusOr<std::unique_ptr<PredictionFile>> PredictionFile::Create(const std::string& path,
                                                                       const data::Schema& schema) {
  auto file = std::unique_ptr<PredictionFile>(new PredictionFile(schema));
  ASSIGN_OR_RETURN(file->out_, base::OutputFile::Create(path));
  return file;
}

absl::Status PredictionFile::Add(const train::StepResult& result) {
  std::string& text = waiting_[result.batch->index];
  for (int sample = 0; sample < result.batch->size; ++sample) AppendSample(result, static_cast<size_t>(sample), text);
  for (auto next = waiting_.find(next_); next != waiting_.end(); next = waiting_.find(++next_)) {
    RETURN_IF_ERROR(out_->Append(next->second));
    waiting_.erase(next);
  }
  return absl::OkStatus();
}

// A label that may be any number is written so that it is read as the same one.
void PredictionFile::AppendSample(const train::StepResult& result, size_t sample, std::string& text) const {
  const char* separator = "";
  for (const base::TensorView& output : result.predictions) {
    absl::StrAppendFormat(&text, "%s%.9g", separator, output.floats()[sample]);
    separator = " ";
  }
  const auto labels = static_cast<size_t>(result.batch->label_dim);
  for (size_t i = 0; i < labels; ++i) {
    const float label = result.batch->labels[sample * labels + i];
    text += schema_.IsReal(schema_.labels[i]) ? absl::StrFormat(" %.9g", label) : absl::StrFormat(" %g", label);
  }
  text += '\n';
}

absl::Status PredictionFile::Commit() { return out_->Commit(base::OutputFile::Durability::kSynced); }

}  // namespace regatta::worker
