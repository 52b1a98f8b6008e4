#include "run/meter_merge.h"

namespace regatta::run {

absl::Status MergeMeters(const std::map<int, Bytes>& meters, std::optional<int> own, train::PassMeter& meter) {
  for (const auto& [rank, theirs] : meters)
    if (rank != own) RETURN_IF_ERROR(base::Annotate(meter.Merge(theirs), absl::StrCat("metrics of worker ", rank)));
  return absl::OkStatus();
}

absl::StatusOr<train::EpochReport> TeamReport(const char* what, const std::map<int, Bytes>& meters,
                                              const train::PassMeter& mine) {
  const train::EpochReport here = mine.Epoch(what);
  train::PassMeter all = train::PassMeter::Empty(mine);
  RETURN_IF_ERROR(MergeMeters(meters, std::nullopt, all));
  train::EpochReport report = all.Epoch(what);
  report.seconds = here.seconds;
  report.samples_per_second = here.seconds > 0 ? static_cast<double>(report.samples) / here.seconds : 0;
  return report;
}

}  // namespace regatta::run
