#include "run/validation.h"

#include "run/metered_pass.h"

namespace regatta::run {

absl::StatusOr<Validation::After> Validation::Validate(const Round<ValidatedMessage>& round,
                                                       std::optional<uint64_t> epoch) {
  After after = ValidatedMessage::GO_ON;
  if (epoch.has_value() && parts_.dataset != nullptr && !team_.Completed(round)) {
    ASSIGN_OR_RETURN(after, ValidateHere(*epoch));
  }
  ValidatedMessage mine;
  mine.set_after(after);
  if (after == ValidatedMessage::STOPPED) mine.set_signal(static_cast<uint32_t>(parts_.signal()));
  PutBest(best_, mine);
  ASSIGN_OR_RETURN(const ValidatedMessage validated, Broadcast(team_, round, mine));
  if (team_.chief()) best_ = BestFrom(validated);
  signal_ = static_cast<int>(validated.signal());
  return validated.after();
}

absl::StatusOr<Validation::After> Validation::ValidateHere(uint64_t epoch) {
  MeteredPass pass(epoch, parts_.spec, [this] { return parts_.signal() != 0; });
  const auto end = parts_.trainer->RunPass(*parts_.dataset, base::StepKind::kInfer, {.pass = epoch}, 0, pass);
  if (!end.ok()) return base::Annotate(end.status(), absl::StrCat("validating epoch ", epoch));
  if (!end->complete) return ValidatedMessage::STOPPED;
  const train::EpochReport report = pass.meter().Epoch("validation of epoch");
  parts_.reporter.Epoch(report);
  const double score = report.auc().value_or(-report.loss);
  if (!best_.has_value() || score > best_->score) best_ = BestEpoch{epoch, score};
  RETURN_IF_ERROR(parts_.root->MarkBest(best_->epoch));
  const uint64_t since = epoch - best_->epoch;
  if (parts_.early_stop == 0 || since < parts_.early_stop) return ValidatedMessage::GO_ON;
  parts_.reporter.Note(
      absl::StrCat("early stop: no better validation for ", since, " epochs; the best is epoch ", best_->epoch));
  return ValidatedMessage::STOP_EARLY;
}

}  // namespace regatta::run
