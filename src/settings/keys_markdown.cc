#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/scalar.h"
#include "settings/key_table.h"
#include "settings/optimizer.h"
#include "settings/table_parameters.h"

namespace regatta::settings {
namespace {

std::string TypeText(const KeySpec& spec) {
  switch (spec.type) {
    case KeyType::kAny:
      return "any";
    case KeyType::kBool:
      return "True/False";
    case KeyType::kInt:
      return "integer";
    case KeyType::kDouble:
      return "number";
    case KeyType::kString:
      return "text";
    case KeyType::kPath:
      return "path";
    case KeyType::kBytes:
      return "size";
    case KeyType::kChoice: {
      std::vector<std::string> names(spec.choices.begin(), spec.choices.end());
      return absl::StrJoin(names, ", ");
    }
    case KeyType::kStringList:
      return "list of names";
  }
  return "";
}

std::string RangeText(const KeySpec& spec) {
  if (spec.type != KeyType::kInt && spec.type != KeyType::kDouble) return "";
  const auto number = [](double value) { return base::NumberText(value); };
  return absl::StrCat(" ", number(spec.min), "…", number(spec.max));
}

std::string DefaultText(const KeySpec& spec) {
  if (!spec.default_text.empty()) return std::string(spec.default_text);
  const RunnerOptions options;
  if (const auto* field = std::get_if<bool RunnerOptions::*>(&spec.field)) return options.*(*field) ? "True" : "False";
  if (const auto* field = std::get_if<int64_t RunnerOptions::*>(&spec.field)) return std::to_string(options.*(*field));
  if (const auto* field = std::get_if<double RunnerOptions::*>(&spec.field)) return base::NumberText(options.*(*field));
  if (const auto* field = std::get_if<std::string RunnerOptions::*>(&spec.field)) return options.*(*field);
  if (const auto* field = std::get_if<ChoiceField>(&spec.field)) return std::string(spec.choices[field->get(options)]);
  return "";
}

void AppendTable(KeyKind kind, std::string& out) {
  out += "\n| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const KeySpec& spec : KeyTable()) {
    if (spec.kind != kind) continue;
    absl::StrAppend(&out, "| runner.", base::View(spec.path), " | ", TypeText(spec), RangeText(spec), " | ",
                    DefaultText(spec), " | ", base::View(spec.doc), " |\n");
  }
}

void AppendDocs(std::span<const KeyDoc> docs, std::string& out) {
  out += "\n| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const KeyDoc& doc : docs) {
    absl::StrAppend(&out, "| ", base::View(doc.path), " | ", base::View(doc.type), " | ", base::View(doc.default_text),
                    " | ", base::View(doc.doc), " |\n");
  }
}

}  // namespace

std::string KeysMarkdown() {
  std::string out =
      "# Keys of a configuration\n\n"
      "Made by `regatta config --keys`; edit src/settings/key_table.cc, not this page. `regatta config -m config.yaml` "
      "prints the value that every key has in a run, and where it came from.\n\n"
      "Relative paths start at the YAML's folder. `-o key=value` sets any key; the value is YAML. `model` at the top "
      "names the model; without it the name of the YAML's folder does (logistic_regression = lr).\n\n"
      "## runner\n";
  AppendTable(KeyKind::kUsed, out);
  out +=
      "\n### For workers with servers\n\nA process that trains alone accepts them with a warning. docs/cluster.md "
      "tells "
      "what they do.\n";
  AppendTable(KeyKind::kWithServers, out);
  out += "\n### Known, without effect here\n\nAccepted with a warning; the last column says why.\n";
  AppendTable(KeyKind::kNoEffect, out);
  out +=
      "\n### Not available in this version\n\nAccepted while they ask for nothing (False, empty); otherwise an "
      "error.\n";
  AppendTable(KeyKind::kRefused, out);
  out +=
      "\n## hyper_parameters\n\nBeside these, every model reads keys of its own: see its config.yaml below models/.\n";
  AppendDocs(OptimizerKeys(), out);
  out +=
      "\n## table_parameters\n\n`<table>` is the name of one of the model's tables. As in PaddleRec the keys may also "
      "stand below `accessor:`, and a rule's settings below `naive:`, `adagrad:` or `adam:`.\n";
  AppendDocs(TableKeys(), out);
  return out;
}

}  // namespace regatta::settings
