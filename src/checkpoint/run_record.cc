#include "checkpoint/run_record.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "checkpoint/json_field.h"

namespace regatta::checkpoint {
namespace {

constexpr uint64_t kMaxRecordBytes = 1 << 20;

struct PhaseName {
  RunPhase phase;
  const char* name;
};
constexpr PhaseName kPhases[] = {
    {RunPhase::kRunning, "running"}, {RunPhase::kInterrupted, "interrupted"}, {RunPhase::kFinished, "finished"}};

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm tm{};
  gmtime_r(&now, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}

bool IsNumber(std::string_view s) {
  return !s.empty() && s.size() <= 20 &&
         std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

RunRecord RunRecord::Begin(uint64_t config_hash) {
  const int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
  RunRecord record;
  record.id = HexOf(base::Combine64(static_cast<uint64_t>(now), static_cast<uint64_t>(getpid())), 16);
  record.started = UtcNow();
  record.config_hash = config_hash;
  record.pid = getpid();
  return record;
}

bool IsEpochName(std::string_view name) { return IsNumber(name); }

bool IsCheckpointName(std::string_view name) {
  constexpr std::string_view kFolder = "checkpoint/";
  if (name.substr(0, kFolder.size()) != kFolder) return false;
  name.remove_prefix(kFolder.size());
  const size_t dash = name.find('-');
  return dash != std::string_view::npos && IsNumber(name.substr(0, dash)) && IsNumber(name.substr(dash + 1));
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& root) {
  const std::string path = root + "/RUN";
  ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxRecordBytes));
  const absl::StatusOr<JsonTree> parsed = ParseJson(text, {.bytes = kMaxRecordBytes});
  if (!parsed.ok()) return base::Annotate(parsed.status(), path);
  const JsonTree& json = *parsed;
  RunRecord record;
  std::string phase;
  RETURN_IF_ERROR(RequiredField(json, "state", path, phase));
  const auto* it =
      std::find_if(std::begin(kPhases), std::end(kPhases), [&](const PhaseName& p) { return p.name == phase; });
  if (it == std::end(kPhases)) return WrongField(path + ".state", "running, interrupted or finished");
  record.phase = it->phase;
  RETURN_IF_ERROR(RequiredField(json, "run", path, record.id));
  RETURN_IF_ERROR(RequiredField(json, "started", path, record.started));
  record.started = base::Printable(record.started);
  RETURN_IF_ERROR(RequiredHex(json, "config_hash", path, record.config_hash));
  RETURN_IF_ERROR(RequiredField(json, "pid", path, record.pid));
  if (const auto config = json.find("config"); config != json.end() && config->is_object()) {
    for (const auto& [key, value] : config->items())
      if (value.is_string()) record.config[key] = value.get_ref<const std::string&>();
  }
  return record;
}

absl::Status WriteRunRecord(const std::string& root, const RunRecord& record) {
  const auto* it =
      std::find_if(std::begin(kPhases), std::end(kPhases), [&](const PhaseName& p) { return p.phase == record.phase; });
  Json json{{"state", it->name},
            {"run", record.id},
            {"started", record.started},
            {"config_hash", HexOf(record.config_hash, 16)},
            {"pid", record.pid}};
  for (const auto& [key, value] : record.config) json["config"][key] = value;
  return base::WriteFileAtomically(root + "/RUN", json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

absl::StatusOr<CurrentRecord> ReadCurrent(const std::string& root) {
  const std::string path = root + "/CURRENT";
  ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxRecordBytes));
  CurrentRecord record;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::string_view name(line.data(), line.size());
    if (absl::StartsWith(line, "run ")) {
      record.run_id = std::string(line.substr(4));
    } else if (IsEpochName(name) || IsCheckpointName(name)) {
      record.saves.emplace_back(name);
    } else {
      return absl::DataLossError(
          absl::StrCat(path, ": '", base::Printable(name.substr(0, 80)), "' is no name of a save"));
    }
  }
  if (record.saves.empty() || !absl::EndsWith(text, "\n"))
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  return record;
}

absl::Status WriteCurrent(const std::string& root, const CurrentRecord& record) {
  std::string text = absl::StrCat(record.saves.front(), "\nrun ", record.run_id, "\n");
  for (size_t i = 1; i < record.saves.size(); ++i) absl::StrAppend(&text, record.saves[i], "\n");
  return base::WriteFileAtomically(root + "/CURRENT", text);
}

absl::StatusOr<std::string> ReadBest(const std::string& root) {
  ASSIGN_OR_RETURN(std::string text, base::ReadFile(root + "/BEST", kMaxRecordBytes));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (!IsEpochName(text)) return absl::DataLossError(absl::StrCat(root, "/BEST is damaged"));
  return text;
}

absl::Status WriteBest(const std::string& root, const std::string& name) {
  return base::WriteFileAtomically(root + "/BEST", name + "\n");
}

}  // namespace regatta::checkpoint
