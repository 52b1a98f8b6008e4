#include "train/report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "train/output_text.h"

namespace regatta::train {
namespace {

using nlohmann::json;

void PrintLine(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string Duration(double seconds) {
  const auto total = static_cast<int64_t>(std::llround(seconds));
  if (total >= 3600) return absl::StrFormat("%d:%02d:%02d", total / 3600, total / 60 % 60, total % 60);
  return absl::StrFormat("%d:%02d", total / 60, total % 60);
}

std::string ClusterText(const ClusterReport& c) {
  std::string text =
      absl::StrFormat(", cluster workers: %d, cluster samples: %d, cluster loss: %.6f, cluster ips: %.1f ins/s",
                      c.workers, c.samples, c.loss, c.samples_per_second);
  if (c.slowest.has_value())
    absl::StrAppendFormat(&text, ", slowest: worker %d at %.2f of the mean", c.slowest->worker, c.slowest->share);
  if (c.staleness.has_value()) absl::StrAppendFormat(&text, ", staleness: %.1f updates", *c.staleness);
  return text;
}

json ClusterJson(const ClusterReport& c) {
  json out = {{"workers", c.workers}, {"samples", c.samples}, {"loss", c.loss}, {"ips", c.samples_per_second}};
  if (c.slowest.has_value()) out["slowest"] = {{"worker", c.slowest->worker}, {"share", c.slowest->share}};
  if (c.staleness.has_value()) out["staleness"] = *c.staleness;
  return out;
}

}  // namespace

void Reporter::Interval(const IntervalReport& r) {
  if (style_ == ReportStyle::kTerminal) return;
  if (style_ == ReportStyle::kJson) {
    json out = {{"report", "interval"},
                {"epoch", r.epoch},
                {"batch_id", r.batches},
                {"avg_reader_cost", r.reader_seconds},
                {"avg_batch_cost", r.batch_seconds},
                {"avg_samples", r.samples},
                {"ips", r.samples_per_second}};
    if (!r.outputs.empty()) out["loss"] = r.loss;
    PutMainFigures(r.outputs, auc_, out);
    if (r.cluster.has_value()) out["cluster"] = ClusterJson(*r.cluster);
    PrintLine(out.dump());
    return;
  }
  const std::string loss = r.outputs.empty() ? "" : absl::StrFormat("loss: %.6f, ", r.loss);
  PrintLine(absl::StrFormat(
      "epoch: %d, batch_id: %d, %s%savg_reader_cost: %.5f sec, avg_batch_cost: %.5f sec, avg_samples: %.1f, ips: %.1f "
      "ins/s%s",
      r.epoch, r.batches, MainFigures(r.outputs, auc_), loss, r.reader_seconds, r.batch_seconds, r.samples,
      r.samples_per_second, r.cluster.has_value() ? ClusterText(*r.cluster) : ""));
}

void Reporter::Live(const IntervalReport& r, const data::Progress& progress) {
  if (style_ != ReportStyle::kTerminal) return;
  const auto now = std::chrono::steady_clock::now();
  if (!live_ || live_epoch_ != r.epoch) live_since_ = now, live_epoch_ = r.epoch;
  if (live_ && now - last_live_ < std::chrono::milliseconds(200)) return;
  last_live_ = now;
  live_ = true;
  const double share = progress.bytes_total == 0
                           ? 0
                           : static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total);
  const double elapsed = std::chrono::duration<double>(now - live_since_).count();
  const std::string eta = share > 0.01 ? Duration(elapsed / share * (1 - share)) : "?";
  const std::string figures = LiveFigures(r.outputs, auc_);
  const std::string loss = r.outputs.empty() ? "" : absl::StrFormat("loss %.4f  ", r.loss);
  const std::string all =
      r.cluster.has_value() ? absl::StrFormat(" of %.0f", r.cluster->samples_per_second) : std::string();
  std::printf("\r\033[Kepoch %lu  %5.1f%%  %s%.0f%s ins/s  %sETA %s", static_cast<unsigned long>(r.epoch), 100 * share,
              figures.c_str(), r.samples_per_second, all.c_str(), loss.c_str(), eta.c_str());
  std::fflush(stdout);
}

void Reporter::ClearLive() {
  if (!live_) return;
  std::fputs("\r\033[K", stdout);
  live_ = false;
}

void Reporter::Epoch(const EpochReport& r) {
  ClearLive();
  if (style_ == ReportStyle::kJson) {
    json out = {{"report", r.what},
                {"epoch", r.epoch},
                {"seconds", r.seconds},
                {"samples", r.samples},
                {"ips", r.samples_per_second},
                {"bad_lines", r.bad_lines}};
    if (!r.outputs.empty()) out["loss"] = r.loss;
    PutAllFigures(r.outputs, out);
    PrintLine(out.dump());
    return;
  }
  std::string line = absl::StrFormat("%s: %d done", r.what, r.epoch);
  if (!r.outputs.empty()) absl::StrAppendFormat(&line, ", %sloss: %.6f", MainFigures(r.outputs, auc_), r.loss);
  if (r.all_metrics) line += OtherFigures(r.outputs);
  absl::StrAppendFormat(&line, ", epoch time: %.2f s, samples: %d, ips: %.1f ins/s", r.seconds, r.samples,
                        r.samples_per_second);
  if (r.bad_lines > 0) absl::StrAppendFormat(&line, ", bad lines: %d", r.bad_lines);
  PrintLine(line);
}

void Reporter::Note(const std::string& text) {
  ClearLive();
  PrintLine(style_ == ReportStyle::kJson ? json{{"report", "note"}, {"text", text}}.dump() : text);
}

}  // namespace regatta::train
