#include "server/job_spec.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/printable.h"
#include "checkpoint/schema_json.h"

namespace regatta::server {
namespace {

constexpr size_t kMaxDifferences = 12;
constexpr uint32_t kMaxWorkers = 65'536;
constexpr uint32_t kMaxWorkerWait = 10'000'000;
constexpr int kMaxSettings = 64;
constexpr size_t kMaxNameBytes = 256, kMaxValueBytes = 4096, kMaxTablesBytes = 4 << 20;
constexpr size_t kMaxTables = 4096, kMaxParameters = 65'536;
constexpr uint64_t kMaxDenseElements = uint64_t{1} << 30;
constexpr size_t kShownBytes = 80;  // of a value that is refused

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

std::string Shown(std::string_view text) {
  return absl::StrCat(base::Printable(text.substr(0, kShownBytes)), text.size() > kShownBytes ? "…" : "");
}

template <typename Value, size_t kCount>
absl::StatusOr<Value> Find(const Named<Value> (&table)[kCount], const std::string& name, const char* field) {
  std::string names;
  for (const Named<Value>& entry : table) {
    if (entry.name == name) return entry.value;
    absl::StrAppend(&names, names.empty() ? "" : ", ", base::View(entry.name));
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": '", Shown(name), "' is not one of ", names));
}

absl::Status CheckCount(uint32_t value, uint32_t most, const char* field) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, " is not between 1 and ", most));
}

// Names go into logs, metrics and files.
absl::Status CheckName(const std::string& name, std::string_view what) {
  if (name.size() <= kMaxNameBytes && base::Printable(name) == name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(base::View(what), " '", Shown(name), "': want at most ", kMaxNameBytes,
                                                 " bytes of printable UTF-8"));
}

absl::Status CheckSettings(const ps::JobSpec& spec) {
  if (spec.settings_size() > kMaxSettings)
    return absl::InvalidArgumentError(
        absl::StrCat("settings: ", spec.settings_size(), " of them; the limit is ", kMaxSettings));
  for (const auto& [name, value] : spec.settings()) {
    RETURN_IF_ERROR(CheckName(name, "the setting"));
    if (value.size() > kMaxValueBytes)
      return absl::InvalidArgumentError(
          absl::StrCat("settings.", name, ": ", value.size(), " bytes; the limit is ", kMaxValueBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckTables(const table::ModelConfig& tables) {
  if (tables.sparse.size() > kMaxTables)
    return absl::InvalidArgumentError(
        absl::StrCat("tables.sparse: ", tables.sparse.size(), " tables; the limit is ", kMaxTables));
  std::set<std::string_view> names;
  for (const table::SparseTableConfig& table : tables.sparse) {
    RETURN_IF_ERROR(CheckName(table.name, "the table"));
    if (!names.insert(table.name).second)
      return absl::InvalidArgumentError(absl::StrCat("tables.sparse: two tables are named ", table.name));
  }
  RETURN_IF_ERROR(CheckName(tables.dense.name, "the table"));
  if (tables.dense.parameters.size() > kMaxParameters)
    return absl::InvalidArgumentError(
        absl::StrCat("tables.dense: ", tables.dense.parameters.size(), " parameters; the limit is ", kMaxParameters));
  uint64_t left = kMaxDenseElements;
  for (const table::DenseParameterConfig& parameter : tables.dense.parameters) {
    RETURN_IF_ERROR(CheckName(parameter.name, "the parameter"));
    uint64_t elements = 1;
    for (const int64_t d : parameter.shape) {
      if (d < 0 || (d > 0 && elements > left / static_cast<uint64_t>(d)))
        return absl::InvalidArgumentError(absl::StrCat("tables.dense: the shape of ", parameter.name,
                                                       ": want sizes from 0, and in all at most ", kMaxDenseElements,
                                                       " elements"));
      elements *= static_cast<uint64_t>(d);
    }
    left -= std::min(left, elements);
  }
  return absl::OkStatus();
}

absl::StatusOr<checkpoint::JsonTree> ParseTables(const ps::JobSpec& spec) {
  absl::StatusOr<checkpoint::JsonTree> tables = checkpoint::ParseJson(spec.tables_json(), {.bytes = kMaxTablesBytes});
  if (!tables.ok()) return absl::InvalidArgumentError(absl::StrCat("tables: ", tables.status().message()));
  return tables;
}

// The fields of a job as text, by their path, in an order that does not depend on how a worker wrote them.
using Fields = std::vector<std::pair<std::string, std::string>>;

void AddFields(const checkpoint::JsonTree& tree, const std::string& path, Fields& out) {
  if (!tree.is_structured() || tree.empty()) {
    out.emplace_back(path, tree.dump(-1, ' ', false, checkpoint::JsonTree::error_handler_t::replace));
  } else if (tree.is_object()) {
    for (const auto& [key, value] : tree.items()) AddFields(value, absl::StrCat(path, ".", key), out);
  } else {
    for (size_t i = 0; i < tree.size(); ++i) AddFields(tree[i], absl::StrCat(path, ".", i), out);
  }
}

enum class Tables : uint8_t { kSkip, kRead };

Fields FieldsOf(const ps::JobSpec& spec, Tables wanted) {
  const auto quoted = [](const std::string& text) { return absl::StrCat("\"", text, "\""); };
  Fields fields = {{"mode", quoted(spec.mode())},
                   {"workers", absl::StrCat(spec.workers())},
                   {"servers", absl::StrCat(spec.servers())},
                   {"sparse_lanes", absl::StrCat(spec.sparse_lanes())},
                   {"nan_policy", quoted(spec.nan_policy())},
                   {"on_worker_loss", quoted(spec.on_worker_loss())},
                   {"ack", quoted(spec.ack())},
                   {"worker_wait", absl::StrCat(spec.worker_wait())}};
  const size_t settings = fields.size();
  for (const auto& [name, value] : spec.settings()) fields.emplace_back(name, quoted(value));
  std::sort(fields.begin() + static_cast<ptrdiff_t>(settings), fields.end());
  if (wanted == Tables::kSkip) return fields;
  const absl::StatusOr<checkpoint::JsonTree> tables = ParseTables(spec);
  AddFields(tables.ok() ? *tables : checkpoint::JsonTree(std::string(tables.status().message())), "tables", fields);
  return fields;
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
  RETURN_IF_ERROR(CheckSettings(spec));
  RETURN_IF_ERROR(CheckCount(spec.workers(), kMaxWorkers, "workers"));
  RETURN_IF_ERROR(CheckCount(spec.servers(), wire::LaneMap::kMaxLanes, "servers"));
  RETURN_IF_ERROR(CheckCount(spec.sparse_lanes(), wire::LaneMap::kMaxLanes / spec.servers(), "sparse_lanes"));
  job.workers = static_cast<int>(spec.workers());
  job.lanes = {static_cast<int>(spec.servers()), static_cast<int>(spec.sparse_lanes())};
  ASSIGN_OR_RETURN(const checkpoint::JsonTree tables, ParseTables(spec));
  auto parsed = checkpoint::ModelConfigFromJson(tables, "tables", checkpoint::UnknownFields::kRefuse);
  if (!parsed.ok()) return absl::InvalidArgumentError(parsed.status().message());
  RETURN_IF_ERROR(CheckTables(*parsed));
  job.tables = *std::move(parsed);
  return job;
}

std::vector<std::string> Differences(const ps::JobSpec& here, const ps::JobSpec& there) {
  // As workers of one program send them: then nothing need be parsed.
  const Tables tables = here.tables_json() == there.tables_json() ? Tables::kSkip : Tables::kRead;
  const Fields a = FieldsOf(here, tables), b = FieldsOf(there, tables);
  const std::unordered_map<std::string, std::string> in_a(a.begin(), a.end()), in_b(b.begin(), b.end());
  std::vector<std::string> differences;
  const auto add = [&](const std::string& path, std::string_view left, std::string_view right) {
    differences.push_back(absl::StrCat(Shown(path), ": ", Shown(left), " here, ", Shown(right), " there"));
    return differences.size() < kMaxDifferences;
  };
  for (const auto& [path, value] : a) {
    const auto other = in_b.find(path);
    if (other != in_b.end() && other->second == value) continue;
    if (!add(path, value, other == in_b.end() ? "nothing" : other->second)) return differences;
  }
  for (const auto& [path, value] : b)
    if (!in_a.contains(path) && !add(path, "nothing", value)) return differences;
  return differences;
}

}  // namespace regatta::server
