#include "server/job_spec.h"

#include <optional>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "table/checkpoint/schema_json.h"

namespace regatta::server {
namespace {

constexpr size_t kMaxDifferences = 12;
constexpr uint32_t kMaxWorkers = 65'536;
constexpr uint32_t kMaxWorkerWait = 10'000'000;
constexpr int kMaxSettings = 64;

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr Named<Mode> kModes[] = {
    {"sync", Mode::kSync}, {"async", Mode::kAsync}, {"half_async", Mode::kHalfAsync}, {"geo", Mode::kGeo}};
constexpr Named<table::NanPolicy> kNanPolicies[] = {
    {"skip", table::NanPolicy::kSkip}, {"abort", table::NanPolicy::kAbort}, {"clip", table::NanPolicy::kClip}};
constexpr Named<LossPolicy> kLossPolicies[] = {
    {"fail", LossPolicy::kFail}, {"shrink", LossPolicy::kShrink}, {"await", LossPolicy::kAwait}};
constexpr Named<Ack> kAcks[] = {
    {"", Ack::kDefault}, {"memory", Ack::kMemory}, {"logged", Ack::kLogged}, {"synced", Ack::kSynced}};

template <typename Value, size_t kCount>
absl::StatusOr<Value> Find(const Named<Value> (&table)[kCount], const std::string& name, const char* field) {
  std::string names;
  for (const Named<Value>& entry : table) {
    if (entry.name == name) return entry.value;
    absl::StrAppend(&names, names.empty() ? "" : ", ", base::View(entry.name));
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": '", name, "' is not one of ", names));
}

absl::Status CheckCount(uint32_t value, uint32_t most, const char* field) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, " is not between 1 and ", most));
}

table::Json Flat(const ps::JobSpec& spec) {
  table::Json json{{"mode", spec.mode()},
                   {"workers", spec.workers()},
                   {"servers", spec.servers()},
                   {"sparse_lanes", spec.sparse_lanes()},
                   {"nan_policy", spec.nan_policy()},
                   {"on_worker_loss", spec.on_worker_loss()},
                   {"ack", spec.ack()},
                   {"worker_wait", spec.worker_wait()}};
  for (const auto& [name, value] : spec.settings()) json[name] = value;
  json["tables"] = table::Json::parse(spec.tables_json(), nullptr, /*allow_exceptions=*/false);
  return json.flatten();
}

}  // namespace

const char* Name(Mode mode) {
  for (const auto& named : kModes)
    if (named.value == mode) return named.name.data();
  return "";
}

absl::StatusOr<JobSpec> ParseJobSpec(const ps::JobSpec& spec) {
  JobSpec job;
  ASSIGN_OR_RETURN(job.mode, Find(kModes, spec.mode(), "mode"));
  ASSIGN_OR_RETURN(job.nan_policy, Find(kNanPolicies, spec.nan_policy(), "nan_policy"));
  ASSIGN_OR_RETURN(job.loss_policy, Find(kLossPolicies, spec.on_worker_loss(), "on_worker_loss"));
  ASSIGN_OR_RETURN(job.ack, Find(kAcks, spec.ack(), "ack"));
  if (job.loss_policy == LossPolicy::kAwait) {
    RETURN_IF_ERROR(CheckCount(spec.worker_wait(), kMaxWorkerWait, "worker_wait"));
    job.worker_wait = std::chrono::seconds(spec.worker_wait());
  }
  if (spec.settings_size() > kMaxSettings)
    return absl::InvalidArgumentError(
        absl::StrCat("settings: ", spec.settings_size(), " of them; the limit is ", kMaxSettings));
  RETURN_IF_ERROR(CheckCount(spec.workers(), kMaxWorkers, "workers"));
  RETURN_IF_ERROR(CheckCount(spec.servers(), wire::LaneMap::kMaxLanes, "servers"));
  RETURN_IF_ERROR(CheckCount(spec.sparse_lanes(), wire::LaneMap::kMaxLanes / spec.servers(), "sparse_lanes"));
  job.workers = static_cast<int>(spec.workers());
  job.lanes = {static_cast<int>(spec.servers()), static_cast<int>(spec.sparse_lanes())};
  const table::Json tables = table::Json::parse(spec.tables_json(), nullptr, /*allow_exceptions=*/false);
  if (tables.is_discarded()) return absl::InvalidArgumentError("tables: not JSON");
  auto parsed = table::ModelConfigFromJson(tables, "tables");
  if (!parsed.ok()) return absl::InvalidArgumentError(parsed.status().message());
  job.tables = *std::move(parsed);
  return job;
}

std::vector<std::string> Differences(const ps::JobSpec& here, const ps::JobSpec& there) {
  const table::Json a = Flat(here), b = Flat(there);
  std::vector<std::string> differences;
  const auto add = [&](const std::string& path, const std::string& left, const std::string& right) {
    if (differences.size() < kMaxDifferences)
      differences.push_back(
          absl::StrCat(absl::StrReplaceAll(path.substr(1), {{"/", "."}}), ": ", left, " here, ", right, " there"));
  };
  for (const auto& [path, value] : a.items()) {
    const auto other = b.find(path);
    if (other == b.end()) {
      add(path, value.dump(), "nothing");
    } else if (*other != value) {
      add(path, value.dump(), other->dump());
    }
  }
  for (const auto& [path, value] : b.items())
    if (!a.contains(path)) add(path, "nothing", value.dump());
  return differences;
}

}  // namespace regatta::server
