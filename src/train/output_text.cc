#include "train/output_text.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace regatta::train {
namespace {

using metrics::BinaryReport;
using metrics::RegressionReport;
using nlohmann::json;

json OrNull(const std::optional<double>& value) { return value.has_value() ? json(*value) : json(nullptr); }

// What stands in front of the names of an output's figures.
std::string PrefixOf(const OutputReport& output, std::span<const OutputReport> all) {
  return all.size() == 1 ? "" : absl::StrCat(output.name, "_");
}

std::string AucText(const std::optional<double>& auc) {
  return auc.has_value() ? absl::StrFormat("%.6f", *auc) : "undefined (one class only)";
}

std::string OthersOf(const BinaryReport& m, const std::string& prefix) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    absl::StrAppend(&text, ", ", prefix, name, ": ", value);
  };
  const auto number = [](double value) { return absl::StrFormat("%.6f", value); };
  add("logloss", number(m.logloss));
  add("mae", number(m.mae));
  add("rmse", number(m.rmse));
  add("actual_ctr", number(m.actual_ctr));
  add("predicted_ctr", number(m.predicted_ctr));
  add("copc", m.copc.has_value() ? number(*m.copc) : "undefined");
  add("bucket_error", number(m.bucket_error));
  if (!m.by_user.has_value()) return text;
  add("gauc", number(m.by_user->wuauc));
  add("uauc", number(m.by_user->uauc));
  add("users", absl::StrCat(m.by_user->users));
  return text;
}

json AllOf(const BinaryReport& m) {
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

json MainOf(const RegressionReport& m) { return {{"mse", m.mse}, {"mae", m.mae}, {"rmse", m.rmse}}; }

json AllOf(const RegressionReport& m) {
  json out = MainOf(m);
  out["samples"] = m.samples;
  return out;
}

json MainOf(const OutputReport& output, ReportAuc auc) {
  if (const RegressionReport* const m = output.regression()) return MainOf(*m);
  return auc == ReportAuc::kYes ? json{{"auc", OrNull(output.binary()->auc)}} : json::object();
}

}  // namespace

std::string MainFigures(std::span<const OutputReport> outputs, ReportAuc auc) {
  std::string text;
  for (const OutputReport& output : outputs) {
    const std::string prefix = PrefixOf(output, outputs);
    if (const RegressionReport* const m = output.regression()) {
      absl::StrAppendFormat(&text, "%smse: %.6f, %smae: %.6f, %srmse: %.6f, ", prefix, m->mse, prefix, m->mae, prefix,
                            m->rmse);
    } else if (auc == ReportAuc::kYes) {
      absl::StrAppend(&text, prefix, "auc: ", AucText(output.binary()->auc), ", ");
    }
  }
  return text;
}

std::string OtherFigures(std::span<const OutputReport> outputs) {
  std::string text;
  for (const OutputReport& output : outputs)
    if (const BinaryReport* const m = output.binary()) text += OthersOf(*m, PrefixOf(output, outputs));
  return text;
}

std::string LiveFigures(std::span<const OutputReport> outputs, ReportAuc auc) {
  std::string text;
  for (const OutputReport& output : outputs) {
    const std::string prefix = PrefixOf(output, outputs);
    if (const RegressionReport* const m = output.regression()) {
      absl::StrAppendFormat(&text, "%srmse %.4f  ", prefix, m->rmse);
    } else if (auc == ReportAuc::kYes && output.binary()->auc.has_value()) {
      absl::StrAppendFormat(&text, "%sauc %.4f  ", prefix, *output.binary()->auc);
    }
  }
  return text;
}

void PutMainFigures(std::span<const OutputReport> outputs, ReportAuc auc, json& report) {
  if (outputs.size() == 1) return report.update(MainOf(outputs[0], auc));
  for (const OutputReport& output : outputs) report["outputs"][output.name] = MainOf(output, auc);
}

void PutAllFigures(std::span<const OutputReport> outputs, json& report) {
  const auto all_of = [](const OutputReport& output) {
    return std::visit([](const auto& m) { return AllOf(m); }, output.metrics);
  };
  if (outputs.size() == 1) return report.update(all_of(outputs[0]));
  for (const OutputReport& output : outputs) report["outputs"][output.name] = all_of(output);
}

}  // namespace regatta::train
