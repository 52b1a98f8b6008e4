#include "train/report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace regatta::train {
namespace {

using nlohmann::json;

std::string AucText(const std::optional<double>& auc) {
  return auc.has_value() ? absl::StrFormat("%.6f", *auc) : "undefined (one class only)";
}

json OrNull(const std::optional<double>& value) { return value.has_value() ? json(*value) : json(nullptr); }

void PrintLine(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string Duration(double seconds) {
  const auto total = static_cast<int64_t>(std::llround(seconds));
  if (total >= 3600) return absl::StrFormat("%d:%02d:%02d", total / 3600, total / 60 % 60, total % 60);
  return absl::StrFormat("%d:%02d", total / 60, total % 60);
}

json MetricsJson(const metrics::BinaryReport& m) {
  json out = {{"auc", OrNull(m.auc)},   {"logloss", m.logloss},           {"mae", m.mae},
              {"rmse", m.rmse},         {"actual_ctr", m.actual_ctr},     {"predicted_ctr", m.predicted_ctr},
              {"copc", OrNull(m.copc)}, {"bucket_error", m.bucket_error}, {"samples", m.samples}};
  if (m.by_user.has_value()) {
    out["gauc"] = m.by_user->wuauc;
    out["uauc"] = m.by_user->uauc;
    out["users"] = m.by_user->users;
  }
  return out;
}

std::string MetricsText(const metrics::BinaryReport& m) {
  std::string text = absl::StrFormat(
      ", logloss: %.6f, mae: %.6f, rmse: %.6f, actual_ctr: %.6f, predicted_ctr: %.6f, copc: %s, bucket_error: %.6f",
      m.logloss, m.mae, m.rmse, m.actual_ctr, m.predicted_ctr,
      m.copc.has_value() ? absl::StrFormat("%.6f", *m.copc) : "undefined", m.bucket_error);
  if (m.by_user.has_value())
    absl::StrAppendFormat(&text, ", gauc: %.6f, uauc: %.6f, users: %d", m.by_user->wuauc, m.by_user->uauc,
                          m.by_user->users);
  return text;
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
                {"loss", r.loss},
                {"avg_reader_cost", r.reader_seconds},
                {"avg_batch_cost", r.batch_seconds},
                {"avg_samples", r.samples},
                {"ips", r.samples_per_second}};
    if (auc_ == ReportAuc::kYes) out["auc"] = OrNull(r.auc);
    if (r.cluster.has_value()) out["cluster"] = ClusterJson(*r.cluster);
    PrintLine(out.dump());
    return;
  }
  const std::string auc = auc_ == ReportAuc::kYes ? absl::StrCat("auc: ", AucText(r.auc), ", ") : "";
  PrintLine(
      absl::StrFormat("epoch: %d, batch_id: %d, %sloss: %.6f, avg_reader_cost: %.5f sec, avg_batch_cost: %.5f "
                      "sec, avg_samples: %.1f, ips: %.1f ins/s%s",
                      r.epoch, r.batches, auc, r.loss, r.reader_seconds, r.batch_seconds, r.samples,
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
  const std::string auc = auc_ == ReportAuc::kYes && r.auc.has_value() ? absl::StrFormat("auc %.4f  ", *r.auc) : "";
  const std::string all =
      r.cluster.has_value() ? absl::StrFormat(" of %.0f", r.cluster->samples_per_second) : std::string();
  std::printf("\r\033[Kepoch %lu  %5.1f%%  %s%.0f%s ins/s  loss %.4f  ETA %s", static_cast<unsigned long>(r.epoch),
              100 * share, auc.c_str(), r.samples_per_second, all.c_str(), r.loss, eta.c_str());
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
    json out = MetricsJson(r.metrics);
    out.update({{"report", r.what},
                {"epoch", r.epoch},
                {"seconds", r.seconds},
                {"loss", r.loss},
                {"ips", r.samples_per_second},
                {"bad_lines", r.bad_lines}});
    PrintLine(out.dump());
    return;
  }
  const std::string auc = auc_ == ReportAuc::kYes ? absl::StrCat("auc: ", AucText(r.metrics.auc), ", ") : "";
  std::string line = absl::StrFormat("%s: %d done, %sloss: %.6f", r.what, r.epoch, auc, r.loss);
  if (r.all_metrics) line += MetricsText(r.metrics);
  absl::StrAppendFormat(&line, ", epoch time: %.2f s, samples: %d, ips: %.1f ins/s", r.seconds, r.metrics.samples,
                        r.samples_per_second);
  if (r.bad_lines > 0) absl::StrAppendFormat(&line, ", bad lines: %d", r.bad_lines);
  PrintLine(line);
}

void Reporter::Note(const std::string& text) {
  ClearLive();
  PrintLine(style_ == ReportStyle::kJson ? json{{"report", "note"}, {"text", text}}.dump() : text);
}

}  // namespace regatta::train
