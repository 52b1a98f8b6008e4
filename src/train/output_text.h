// The outputs of a net in reports: as text and as JSON. The figures of a net's only output have plain names (auc, mse);
// of several, each has the output's name in front (click_auc) or is in an object of that name.
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "train/output_report.h"

namespace regatta::train {

// The main figures, each followed by ", ": auc, or mse, mae and rmse. ReportAuc::kNo leaves aucs out.
std::string MainFigures(std::span<const OutputReport> outputs, ReportAuc auc);
// What there is beside these, each behind ", ".
std::string OtherFigures(std::span<const OutputReport> outputs);
// The same as MainFigures for the live line, shorter; an auc that is undefined is left out.
std::string LiveFigures(std::span<const OutputReport> outputs, ReportAuc auc);

// Adds the main figures, or all of them, to a report.
void PutMainFigures(std::span<const OutputReport> outputs, ReportAuc auc, nlohmann::json& report);
void PutAllFigures(std::span<const OutputReport> outputs, nlohmann::json& report);

}  // namespace regatta::train
