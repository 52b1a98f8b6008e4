#include "server/job_spec.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/printable.h"
#include "checkpoint/schema_json.h"

namespace regatta::server {
namespace {

constexpr size_t kMaxDifferences = 12;
constexpr uint32_t kMaxWorkers = 65'536;
constexpr uint32_t kMaxWorkerWait = 10'000'000;
constexpr int kMaxSettings = 64;
constexpr size_t kMaxNameBytes = 256, kMaxValueBytes = 4096, kMaxTablesBytes = 4 << 20;
constexpr size_t kMaxTablesValues = 600'000;
constexpr size_t kMaxTables = 4096, kMaxParameters = 65'536;
constexpr uint64_t kMaxDenseElements = uint64_t{1} << 30;
constexpr size_t kShownBytes = 80;  // of a value that is refused
constexpr size_t kMostForeignBytes = 64 << 10;

std::string Shown(std::string_view text) {
  return absl::StrCat(base::Printable(text.substr(0, kShownBytes)), text.size() > kShownBytes ? "…" : "");
}

// The row of `table` that has the name.
template <typename Row, size_t kCount>
absl::StatusOr<Row> Find(const Row (&table)[kCount], const std::string& name, const char* field) {
  std::string names;
  for (const Row& row : table) {
    if (row.name == name) return row;
    absl::StrAppend(&names, names.empty() ? "" : ", ", base::View(row.name));
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
  absl::StatusOr<checkpoint::JsonTree> tables =
      checkpoint::ParseJson(spec.tables_json(), {.bytes = kMaxTablesBytes, .values = kMaxTablesValues});
  if (!tables.ok()) return absl::InvalidArgumentError(absl::StrCat("tables: ", tables.status().message()));
  return tables;
}

// Collects "path: left here, right there", up to kMaxDifferences of them.
class DifferenceList {
 public:
  bool full() const { return found_.size() >= kMaxDifferences; }
  void Add(std::string_view path, std::string_view here, std::string_view there) {
    if (!full()) found_.push_back(absl::StrCat(Shown(path), ": ", Shown(here), " here, ", Shown(there), " there"));
  }
  void Compare(std::string_view path, const std::string& here, const std::string& there) {
    if (here != there) Add(path, absl::StrCat("\"", here, "\""), absl::StrCat("\"", there, "\""));
  }
  void Compare(std::string_view path, uint32_t here, uint32_t there) {
    if (here != there) Add(path, absl::StrCat(here), absl::StrCat(there));
  }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

constexpr std::string_view kNothing = "nothing";

std::string TextOf(const checkpoint::JsonTree& leaf) {
  return leaf.dump(-1, ' ', false, checkpoint::JsonTree::error_handler_t::replace);
}

// A path in a tree, which grows and shrinks with the walk. Its text is made once, not once a leaf: the keys of a
// hostile tree are long.
class TreePath {
 public:
  explicit TreePath(std::string root) : text_(std::move(root)) {}
  const std::string& text() const { return text_; }
  template <typename Part, typename Walk>
  void Within(const Part& part, const Walk& walk) {
    const size_t before = text_.size();
    absl::StrAppend(&text_, ".", part);
    walk();
    text_.resize(before);
  }

 private:
  std::string text_;
};

enum class Side : uint8_t { kHere, kThere };

// Every leaf of a tree that only one side has.
void AddLeaves(const checkpoint::JsonTree& tree, Side side, TreePath& path, DifferenceList& out) {
  if (!tree.is_structured() || tree.empty()) {
    const std::string text = TextOf(tree);
    out.Add(path.text(), side == Side::kHere ? std::string_view(text) : kNothing,
            side == Side::kHere ? kNothing : std::string_view(text));
    return;
  }
  size_t index = 0;
  for (auto item = tree.begin(); item != tree.end() && !out.full(); ++item, ++index) {
    const auto walk = [&] { AddLeaves(*item, side, path, out); };
    tree.is_object() ? path.Within(item.key(), walk) : path.Within(index, walk);
  }
}

void CompareTrees(const checkpoint::JsonTree& here, const checkpoint::JsonTree& there, TreePath& path,
                  DifferenceList& out) {
  if (here.is_object() && there.is_object() && !here.empty() && !there.empty()) {
    for (auto item = here.begin(); item != here.end() && !out.full(); ++item) {
      const auto other = there.find(item.key());
      path.Within(item.key(), [&] {
        other == there.end() ? AddLeaves(*item, Side::kHere, path, out) : CompareTrees(*item, *other, path, out);
      });
    }
    for (auto item = there.begin(); item != there.end() && !out.full(); ++item)
      if (!here.contains(item.key())) path.Within(item.key(), [&] { AddLeaves(*item, Side::kThere, path, out); });
    return;
  }
  if (here.is_array() && there.is_array() && !here.empty() && !there.empty()) {
    for (size_t i = 0; i < std::max(here.size(), there.size()) && !out.full(); ++i)
      path.Within(i, [&] {
        if (i >= there.size())
          AddLeaves(here[i], Side::kHere, path, out);
        else if (i >= here.size())
          AddLeaves(there[i], Side::kThere, path, out);
        else
          CompareTrees(here[i], there[i], path, out);
      });
    return;
  }
  const bool leaves = (!here.is_structured() || here.empty()) && (!there.is_structured() || there.empty());
  if (!leaves) {  // of two kinds
    AddLeaves(here, Side::kHere, path, out);
    AddLeaves(there, Side::kThere, path, out);
  } else if (std::string left = TextOf(here), right = TextOf(there); left != right) {
    out.Add(path.text(), left, right);
  }
}

// Tables of the same job take about as many bytes. Those that take far more are not even parsed.
void CompareTables(const ps::JobSpec& here, const ps::JobSpec& there, DifferenceList& out) {
  if (here.tables_json() == there.tables_json()) return;  // as workers of one program send them
  const size_t size = here.tables_json().size(), other = there.tables_json().size();
  if (other > std::max(kMostForeignBytes, 2 * size)) {
    out.Add("tables", absl::StrCat(size, " bytes"), absl::StrCat(other, " bytes"));
    return;
  }
  const auto read = [](const ps::JobSpec& spec) {
    const absl::StatusOr<checkpoint::JsonTree> tables = ParseTables(spec);
    return tables.ok() ? *tables : checkpoint::JsonTree(std::string(tables.status().message()));
  };
  TreePath path("tables");
  CompareTrees(read(here), read(there), path, out);
}

}  // namespace

absl::StatusOr<JobSpec> ParseJobSpec(const ps::JobSpec& spec) {
  JobSpec job;
  ASSIGN_OR_RETURN(const base::ModeTraits mode, Find(base::kModes, spec.mode(), "mode"));
  ASSIGN_OR_RETURN(const auto nan_policy, Find(table::kNanPolicies, spec.nan_policy(), "nan_policy"));
  ASSIGN_OR_RETURN(const auto loss_policy, Find(base::kLossPolicies, spec.on_worker_loss(), "on_worker_loss"));
  job.mode = mode.mode;
  job.nan_policy = nan_policy.value;
  job.loss_policy = loss_policy.value;
  if (!spec.ack().empty()) {
    ASSIGN_OR_RETURN(const auto ack, Find(base::kAcks, spec.ack(), "ack"));
    job.ack = ack.value;
  }
  if (job.loss_policy == base::LossPolicy::kAwait) {
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

absl::Status CheckSize(const ps::JobSpec& spec) {
  for (const std::string* text : {&spec.mode(), &spec.nan_policy(), &spec.on_worker_loss(), &spec.ack()})
    if (text->size() > kMaxNameBytes)
      return absl::InvalidArgumentError(
          absl::StrCat("the job names a policy of ", text->size(), " bytes; the limit is ", kMaxNameBytes));
  if (spec.tables_json().size() > kMaxTablesBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("tables: ", spec.tables_json().size(), " bytes of JSON; the limit is ", kMaxTablesBytes));
  return CheckSettings(spec);
}

std::vector<std::string> Differences(const ps::JobSpec& here, const ps::JobSpec& there) {
  DifferenceList out;
  out.Compare("mode", here.mode(), there.mode());
  out.Compare("workers", here.workers(), there.workers());
  out.Compare("servers", here.servers(), there.servers());
  out.Compare("sparse_lanes", here.sparse_lanes(), there.sparse_lanes());
  out.Compare("nan_policy", here.nan_policy(), there.nan_policy());
  out.Compare("on_worker_loss", here.on_worker_loss(), there.on_worker_loss());
  out.Compare("ack", here.ack(), there.ack());
  out.Compare("worker_wait", here.worker_wait(), there.worker_wait());
  const std::map<std::string, std::string> settings(here.settings().begin(), here.settings().end());
  const std::map<std::string, std::string> others(there.settings().begin(), there.settings().end());
  for (const auto& [name, value] : settings) {
    const auto other = others.find(name);
    if (other == others.end())
      out.Add(name, absl::StrCat("\"", value, "\""), kNothing);
    else
      out.Compare(name, value, other->second);
  }
  for (const auto& [name, value] : others)
    if (!settings.contains(name)) out.Add(name, kNothing, absl::StrCat("\"", value, "\""));
  CompareTables(here, there, out);
  return out.Take();
}

}  // namespace regatta::server
