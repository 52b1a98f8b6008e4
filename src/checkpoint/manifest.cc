#include "checkpoint/manifest.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/key.h"
#include "checkpoint/block.h"
#include "checkpoint/json_field.h"
#include "checkpoint/schema_json.h"

namespace regatta::checkpoint {
namespace {

constexpr char kFormatName[] = "regatta checkpoint";
constexpr uint64_t kMaxItems = uint64_t{1} << 40;  // times the largest row this stays below 2^64
constexpr size_t kTrailerBytes = sizeof("\"crc32c\": \"01234567\"}\n") - 1;

std::string Trailer(uint32_t crc) { return absl::StrCat("\"crc32c\": \"", HexOf(crc, 8), "\"}\n"); }

// Bytes that are no UTF-8 become U+FFFD; the writer reads its manifest back and refuses such names.
std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json ExtentJson(const Extent& e) { return Json{e.file, e.offset, e.bytes, e.items, e.crc}; }

// A list with one compact item a line, so that a manifest can be read and compared by eye and by diff.
std::string Lines(const std::vector<Json>& items) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) absl::StrAppend(&text, i ? ",\n" : "\n", "   ", Text(items[i]));
  return text + "]";
}

std::string FormatSparse(const SavedSparse& t) {
  std::vector<Json> extents;
  for (const ShardExtent& e : t.extents)
    extents.push_back(Json{e.shard, e.extent.file, e.extent.offset, e.extent.bytes, e.extent.items, e.extent.crc});
  return absl::StrCat("  {\"config\": ", Text(ToJson(t.config)), ",\n   \"schema\": \"", HexOf(SchemaHash(t), 16),
                      "\", \"row_width\": ", t.row_width, ", \"pull_width\": ", t.pull_width, ", \"rows\": ", t.rows,
                      ",\n   \"extents\": ", Lines(extents), "}");
}

std::string FormatDense(const SavedDense& t) {
  std::vector<Json> extents;
  for (const DenseExtent& e : t.extents)
    extents.push_back(
        Json{e.array, e.begin, e.extent.file, e.extent.offset, e.extent.bytes, e.extent.items, e.extent.crc});
  return absl::StrCat("  {\"config\": ", Text(ToJson(t.config)), ",\n   \"schema\": \"", HexOf(SchemaHash(t), 16),
                      "\", \"size\": ", t.size, ", \"states\": ", t.state_count, ", \"updates\": ", t.updates,
                      ",\n   \"extents\": ", Lines(extents), "}");
}

Json PositionJson(const base::DataPosition& position) {
  Json json{{"pass", position.pass}, {"low", position.low}, {"window", position.window}};
  if (!position.beyond.empty()) json["beyond"] = position.beyond;
  return json;
}

Json RunJson(const RunState& run) {
  return Json{{"epoch", run.epoch},
              {"epoch_state", run.epoch_state == EpochState::kFinished ? "finished" : "running"},
              {"position", PositionJson(run.position)},
              {"step", run.step},
              {"lane_count", run.lane_count},
              {"settings_hash", HexOf(run.settings_hash, 16)}};
}

std::string FormatPart(const SavePart& p) {
  return Text(Json{{"cut", p.snapshot},
                   {"server", p.server},
                   {"servers", p.servers},
                   {"shards", {p.shards.begin, p.shards.end}},
                   {"dense", {p.dense.begin, p.dense.end}}});
}

std::string FormatBase(const SaveBase& b) { return Text(Json{{"id", b.id}, {"manifest", HexOf(b.manifest, 16)}}); }

// One row of numbers after `lead` leading ones: file, offset, bytes, items, crc.
absl::Status ParseExtent(const JsonTree& json, const std::string& where, std::vector<uint64_t>& lead, Extent& out) {
  std::vector<uint64_t> numbers;
  RETURN_IF_ERROR(FromJson(json, where, numbers));
  const size_t skip = lead.size();
  if (numbers.size() != skip + 5) return WrongField(where, absl::StrCat(skip + 5, " numbers"));
  std::copy_n(numbers.begin(), skip, lead.begin());
  if (numbers[skip] >= kMaxDataFiles) return WrongField(where, "a file of the list");
  if (numbers[skip + 4] > UINT32_MAX) return WrongField(where, "a 32-bit checksum");
  if (numbers[skip + 3] > kMaxItems) return WrongField(where, "a plausible number of items");
  out = Extent{static_cast<uint32_t>(numbers[skip]), numbers[skip + 1], numbers[skip + 2], numbers[skip + 3],
               static_cast<uint32_t>(numbers[skip + 4])};
  return absl::OkStatus();
}

absl::Status CheckBytes(const Extent& e, uint64_t want, const std::string& where) {
  if (e.items == 0) return WrongField(where, "at least one item");
  if (e.bytes != want) return WrongField(where, absl::StrCat(want, " bytes for ", e.items, " items, not ", e.bytes));
  return absl::OkStatus();
}

absl::Status ParseId(const JsonTree& json, const char* name, const std::string& where, std::string& id) {
  RETURN_IF_ERROR(RequiredField(json, name, where, id));
  if (!IsSaveId(id)) return WrongField(absl::StrCat(where, ".", name), "1 to 64 of A-Z, a-z, 0-9, '.', '_', '-'");
  return absl::OkStatus();
}

absl::Status ParseRange(const JsonTree& json, const char* name, const std::string& where, uint64_t most,
                        PartRange& range) {
  std::vector<uint64_t> numbers;
  RETURN_IF_ERROR(RequiredField(json, name, where, numbers));
  if (numbers.size() != 2 || numbers[0] > numbers[1] || numbers[1] > most)
    return WrongField(absl::StrCat(where, ".", name), absl::StrCat("a begin and an end up to ", most));
  range = {numbers[0], numbers[1]};
  return absl::OkStatus();
}

absl::StatusOr<SavePart> ParsePart(const JsonTree& json, const std::string& where) {
  SavePart part;
  RETURN_IF_ERROR(ParseId(json, "cut", where, part.snapshot));
  RETURN_IF_ERROR(RequiredField(json, "server", where, part.server));
  RETURN_IF_ERROR(RequiredField(json, "servers", where, part.servers));
  if (part.server >= part.servers) return WrongField(where + ".server", absl::StrCat("one of ", part.servers));
  RETURN_IF_ERROR(ParseRange(json, "shards", where, base::kVirtualShards, part.shards));
  RETURN_IF_ERROR(ParseRange(json, "dense", where, kMaxItems, part.dense));
  return part;
}

absl::StatusOr<SaveBase> ParseBase(const JsonTree& json, const std::string& where) {
  SaveBase saved;
  RETURN_IF_ERROR(ParseId(json, "id", where, saved.id));
  RETURN_IF_ERROR(RequiredHex(json, "manifest", where, saved.manifest));
  return saved;
}

absl::StatusOr<SavedSparse> ParseSparse(const JsonTree& json, const std::string& where, const PartRange& shards) {
  SavedSparse t;
  ASSIGN_OR_RETURN(const JsonTree* config, RequiredChild(json, "config", where, JsonTree::value_t::object));
  ASSIGN_OR_RETURN(t.config, SparseConfigFromJson(*config, where + ".config"));
  RETURN_IF_ERROR(RequiredField(json, "row_width", where, t.row_width));
  RETURN_IF_ERROR(RequiredField(json, "pull_width", where, t.pull_width));
  RETURN_IF_ERROR(RequiredField(json, "rows", where, t.rows));
  if (t.row_width < 1 || t.row_width > static_cast<int>(kMaxRowFloats))
    return WrongField(where + ".row_width", absl::StrCat("1 to ", kMaxRowFloats));
  if (t.pull_width < 1 || t.pull_width > t.row_width) return WrongField(where + ".pull_width", "1 to row_width");
  ASSIGN_OR_RETURN(const JsonTree* extents, RequiredChild(json, "extents", where, JsonTree::value_t::array));
  uint64_t rows = 0;
  for (const JsonTree& item : *extents) {
    const std::string at = absl::StrCat(where, ".extents[", t.extents.size(), "]");
    std::vector<uint64_t> lead(1);
    ShardExtent e;
    RETURN_IF_ERROR(ParseExtent(item, at, lead, e.extent));
    const uint64_t least = t.extents.empty() ? shards.begin : t.extents.back().shard + 1;
    if (lead[0] < least || lead[0] >= shards.end)
      return WrongField(at, absl::StrCat("ascending shards from ", shards.begin, " and below ", shards.end));
    e.shard = static_cast<uint32_t>(lead[0]);
    RETURN_IF_ERROR(CheckBytes(e.extent, RowExtentBytes(e.extent.items, t.row_width), at));
    rows += e.extent.items;
    t.extents.push_back(e);
  }
  if (rows != t.rows) return WrongField(where + ".rows", absl::StrCat(rows, ", the sum of the extents"));
  uint64_t schema = 0;
  RETURN_IF_ERROR(RequiredHex(json, "schema", where, schema));
  if (schema != SchemaHash(t)) return WrongField(where + ".schema", HexOf(SchemaHash(t), 16));
  return t;
}

absl::StatusOr<uint64_t> DenseSize(const table::DenseTableConfig& config, const std::string& where) {
  uint64_t size = 0;
  std::set<std::string> names;
  for (const table::DenseParameterConfig& p : config.parameters) {
    uint64_t elements = 1;
    for (int64_t d : p.shape) {
      if (d < 0 || (d > 0 && elements > kMaxItems / static_cast<uint64_t>(d)))
        return WrongField(absl::StrCat(where, ": shape of ", p.name), "sizes from 0 to a plausible number");
      elements *= static_cast<uint64_t>(d);
    }
    if (!names.insert(p.name).second) return WrongField(absl::StrCat(where, ": ", p.name), "a name of its own");
    size += elements;
    if (size > kMaxItems) return WrongField(where, "a plausible number of elements");
  }
  return size;
}

absl::StatusOr<SavedDense> ParseDense(const JsonTree& json, const std::string& where,
                                      const std::optional<SavePart>& part) {
  SavedDense t;
  ASSIGN_OR_RETURN(const JsonTree* config, RequiredChild(json, "config", where, JsonTree::value_t::object));
  ASSIGN_OR_RETURN(t.config, DenseConfigFromJson(*config, where + ".config"));
  RETURN_IF_ERROR(RequiredField(json, "size", where, t.size));
  RETURN_IF_ERROR(RequiredField(json, "states", where, t.state_count));
  RETURN_IF_ERROR(RequiredField(json, "updates", where, t.updates));
  ASSIGN_OR_RETURN(const uint64_t size, DenseSize(t.config, where));
  if (size != t.size) return WrongField(where + ".size", absl::StrCat(size, ", the sum of the shapes"));
  if (t.state_count > 64) return WrongField(where + ".states", "at most 64");
  const PartRange block = part ? part->dense : PartRange{0, t.size};
  if (block.end > t.size) return WrongField("part.dense", absl::StrCat("a block of ", t.size, " elements"));
  ASSIGN_OR_RETURN(const JsonTree* extents, RequiredChild(json, "extents", where, JsonTree::value_t::array));
  uint64_t array = 0, begin = block.begin;
  for (const JsonTree& item : *extents) {
    const std::string at = absl::StrCat(where, ".extents[", t.extents.size(), "]");
    std::vector<uint64_t> lead(2);
    DenseExtent e;
    RETURN_IF_ERROR(ParseExtent(item, at, lead, e.extent));
    if (lead[0] != array || lead[1] != begin || array > t.state_count || e.extent.items > block.end - begin)
      return WrongField(at, absl::StrCat("elements of array ", array, " from ", begin));
    RETURN_IF_ERROR(CheckBytes(e.extent, FloatExtentBytes(e.extent.items), at));
    e.array = static_cast<uint32_t>(lead[0]);
    e.begin = begin;
    begin += e.extent.items;
    if (begin == block.end) ++array, begin = block.begin;
    t.extents.push_back(e);
  }
  if (block.size() > 0 && (array != t.state_count + 1 || begin != block.begin))
    return WrongField(where + ".extents", "every element of the values and states");
  uint64_t schema = 0;
  RETURN_IF_ERROR(RequiredHex(json, "schema", where, schema));
  if (schema != SchemaHash(t)) return WrongField(where + ".schema", HexOf(SchemaHash(t), 16));
  return t;
}

absl::Status ParsePosition(const JsonTree& json, const std::string& where, base::DataPosition& position) {
  RETURN_IF_ERROR(RequiredField(json, "pass", where, position.pass));
  RETURN_IF_ERROR(RequiredField(json, "low", where, position.low));
  RETURN_IF_ERROR(RequiredField(json, "window", where, position.window));
  RETURN_IF_ERROR(OptionalField(json, "beyond", where, position.beyond));
  if (position.beyond.size() > base::DataPosition::kMaxBeyond || (json.contains("beyond") && position.beyond.empty()) ||
      (!position.beyond.empty() && position.beyond.back() == 0))
    return WrongField(where + ".beyond",
                      absl::StrCat("1 to ", base::DataPosition::kMaxBeyond, " numbers, of which the last is not 0"));
  return absl::OkStatus();
}

absl::Status ParseRun(const JsonTree& json, const std::string& where, RunState& run) {
  RETURN_IF_ERROR(RequiredField(json, "epoch", where, run.epoch));
  std::string state;
  RETURN_IF_ERROR(RequiredField(json, "epoch_state", where, state));
  if (state != "finished" && state != "running") return WrongField(where + ".epoch_state", "running or finished");
  run.epoch_state = state == "finished" ? EpochState::kFinished : EpochState::kRunning;
  ASSIGN_OR_RETURN(const JsonTree* position, RequiredChild(json, "position", where, JsonTree::value_t::object));
  RETURN_IF_ERROR(ParsePosition(*position, where + ".position", run.position));
  RETURN_IF_ERROR(RequiredField(json, "step", where, run.step));
  RETURN_IF_ERROR(RequiredField(json, "lane_count", where, run.lane_count));
  return RequiredHex(json, "settings_hash", where, run.settings_hash);
}

absl::Status ParseFiles(const JsonTree& json, Manifest& m) {
  ASSIGN_OR_RETURN(const JsonTree* files, RequiredChild(json, "files", "manifest", JsonTree::value_t::array));
  for (const JsonTree& item : *files) {
    const uint32_t index = static_cast<uint32_t>(m.files.size());
    const std::string where = absl::StrCat("files[", index, "]");
    DataFileEntry file;
    RETURN_IF_ERROR(RequiredField(item, "name", where, file.name));
    RETURN_IF_ERROR(RequiredField(item, "bytes", where, file.bytes));
    RETURN_IF_ERROR(RequiredHex(item, "crc32c", where, file.crc));
    if (index >= kMaxDataFiles) return WrongField("files", absl::StrCat("at most ", kMaxDataFiles));
    if (file.name != DataFileName(index)) return WrongField(where + ".name", DataFileName(index));
    if (file.bytes < kDataHeaderBytes) return WrongField(where + ".bytes", absl::StrCat(kDataHeaderBytes, " or more"));
    m.files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::Status ParseBlobs(const JsonTree& json, Manifest& m) {
  ASSIGN_OR_RETURN(const JsonTree* blobs, RequiredChild(json, "blobs", "manifest", JsonTree::value_t::array));
  std::set<std::string> names;
  for (const JsonTree& item : *blobs) {
    const std::string where = absl::StrCat("blobs[", m.blobs.size(), "]");
    SavedBlob blob;
    RETURN_IF_ERROR(RequiredField(item, "name", where, blob.name));
    ASSIGN_OR_RETURN(const JsonTree* extent, RequiredChild(item, "extent", where, JsonTree::value_t::array));
    std::vector<uint64_t> lead;
    RETURN_IF_ERROR(ParseExtent(*extent, where, lead, blob.extent));
    if (blob.extent.items == 0 && blob.extent != Extent{}) return WrongField(where, "zeros for an empty blob");
    if (blob.extent.items > 0) RETURN_IF_ERROR(CheckBytes(blob.extent, BlobExtentBytes(blob.extent.items), where));
    if (!names.insert(blob.name).second) return WrongField(where + ".name", "a name of its own");
    m.blobs.push_back(std::move(blob));
  }
  return absl::OkStatus();
}

// Every byte of every file after its header belongs to exactly one extent.
absl::Status CheckTiling(const Manifest& m) {
  std::vector<Extent> all;
  for (const SavedSparse& t : m.sparse)
    for (const ShardExtent& e : t.extents) all.push_back(e.extent);
  if (m.dense)
    for (const DenseExtent& e : m.dense->extents) all.push_back(e.extent);
  for (const SavedBlob& b : m.blobs)
    if (b.extent.items > 0) all.push_back(b.extent);
  std::sort(all.begin(), all.end(),
            [](const Extent& a, const Extent& b) { return std::tie(a.file, a.offset) < std::tie(b.file, b.offset); });
  std::vector<uint64_t> end(m.files.size(), kDataHeaderBytes);
  for (const Extent& e : all) {
    if (e.file >= m.files.size()) return absl::DataLossError(absl::StrCat("an extent names file ", e.file));
    if (e.offset != end[e.file])
      return absl::DataLossError(absl::StrCat(m.files[e.file].name, ": an extent begins at byte ", e.offset,
                                              " where byte ", end[e.file], " is next"));
    if (e.bytes > m.files[e.file].bytes - end[e.file])
      return absl::DataLossError(
          absl::StrCat(m.files[e.file].name, ": the extent at byte ", e.offset, " passes its end"));
    end[e.file] += e.bytes;
  }
  for (size_t i = 0; i < m.files.size(); ++i)
    if (end[i] != m.files[i].bytes)
      return absl::DataLossError(
          absl::StrCat(m.files[i].name, ": extents end at byte ", end[i], " of ", m.files[i].bytes));
  return absl::OkStatus();
}

absl::Status CheckChecksum(std::string_view text) {
  if (text.size() < kTrailerBytes)
    return absl::DataLossError(absl::StrCat("truncated: ", text.size(), " bytes are too few for a manifest"));
  const std::string_view body = text.substr(0, text.size() - kTrailerBytes);
  const uint32_t crc = base::Crc32c(body.data(), body.size());
  if (text.substr(body.size()) == Trailer(crc)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("checksum mismatch: the ", body.size(), " bytes before the last line have ",
                                          HexOf(crc, 8), "; the file is truncated or damaged"));
}

// A version says what older readers would not understand: 2 that a save is not whole, 3 that its window is wide.
absl::Status CheckVersion(const JsonTree& json) {
  std::string format;
  uint64_t version = 0;
  RETURN_IF_ERROR(RequiredField(json, "format", "manifest", format));
  RETURN_IF_ERROR(RequiredField(json, "version", "manifest", version));
  if (format != kFormatName) return WrongField("manifest.format", kFormatName);
  if (version < kWholeVersion || version > kWideVersion)
    return absl::UnimplementedError(absl::StrCat("format version ", version, "; this program reads versions up to ",
                                                 kWideVersion, ": use a newer regatta"));
  return absl::OkStatus();
}

}  // namespace

PartRange Manifest::Shards() const { return part ? part->shards : PartRange{0, base::kVirtualShards}; }
PartRange Manifest::DenseBlock() const {
  if (!dense) return {};
  return part ? part->dense : PartRange{0, dense->size};
}
uint64_t Manifest::TotalBytes() const {
  uint64_t bytes = 0;
  for (const DataFileEntry& f : files) bytes += f.bytes;
  return bytes;
}
uint64_t Manifest::TotalRows() const {
  uint64_t rows = 0;
  for (const SavedSparse& t : sparse) rows += t.rows;
  return rows;
}
const SavedSparse* Manifest::FindSparse(std::string_view name) const {
  for (const SavedSparse& t : sparse)
    if (t.config.name == name) return &t;
  return nullptr;
}

std::string DataFileName(uint32_t index) {
  std::string digits = absl::StrCat(index);
  return absl::StrCat("data-", std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0'), digits);
}

uint64_t ExtentBytes(uint64_t items, uint64_t item_bytes, uint64_t items_per_block) {
  const uint64_t full = items / items_per_block, rest = items % items_per_block;
  const uint64_t block = sizeof(BlockHeader) + RoundUp8(items_per_block * item_bytes);
  return full * block + (rest ? sizeof(BlockHeader) + RoundUp8(rest * item_bytes) : 0);
}
uint64_t RowExtentBytes(uint64_t rows, int row_width) {
  return ExtentBytes(rows, RowBytes(row_width), RowsPerBlock(row_width));
}
uint64_t FloatExtentBytes(uint64_t floats) { return ExtentBytes(floats, 4, kFloatsPerBlock); }
uint64_t BlobExtentBytes(uint64_t bytes) { return ExtentBytes(bytes, 1, kBlockBytes); }

uint64_t SchemaHash(const SavedSparse& t) {
  return base::HashBytes(absl::StrCat("sparse\n", t.config.name, "\n", t.config.accessor, "\n", t.config.rule.name,
                                      "\n", t.config.dim, " ", t.pull_width, " ", t.row_width));
}
uint64_t SchemaHash(const SavedDense& t) {
  std::string text = absl::StrCat("dense\n", t.config.rule.name, "\n", t.state_count);
  for (const table::DenseParameterConfig& p : t.config.parameters) {
    absl::StrAppend(&text, "\n", p.name);
    for (int64_t d : p.shape) absl::StrAppend(&text, " ", d);
  }
  return base::HashBytes(text);
}

std::string FormatManifest(const Manifest& m) {
  std::vector<Json> files, blobs;
  for (const DataFileEntry& f : m.files)
    files.push_back(Json{{"name", f.name}, {"bytes", f.bytes}, {"crc32c", HexOf(f.crc, 8)}});
  for (const SavedBlob& b : m.blobs) blobs.push_back(Json{{"name", b.name}, {"extent", ExtentJson(b.extent)}});
  std::string text = absl::StrCat("{\"format\": \"", kFormatName, "\", \"version\": ", m.Version());
  if (m.part) absl::StrAppend(&text, ",\n\"part\": ", FormatPart(*m.part));
  if (m.base) absl::StrAppend(&text, ",\n\"base\": ", FormatBase(*m.base));
  if (m.run.model) absl::StrAppend(&text, ",\n\"model\": ", Text(ToJson(*m.run.model)));
  absl::StrAppend(&text, ",\n\"run\": ", Text(RunJson(m.run)), ",\n\"files\": ", Lines(files),
                  ",\n\"blobs\": ", Lines(blobs), ",\n\"sparse\": [");
  for (size_t i = 0; i < m.sparse.size(); ++i) absl::StrAppend(&text, i ? ",\n" : "\n", FormatSparse(m.sparse[i]));
  absl::StrAppend(&text, "],\n");
  if (m.dense) absl::StrAppend(&text, "\"dense\":\n", FormatDense(*m.dense), ",\n");
  return text + Trailer(base::Crc32c(text.data(), text.size()));
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text, ManifestChecksum checksum) {
  if (checksum == ManifestChecksum::kCheck) RETURN_IF_ERROR(CheckChecksum(text));
  ASSIGN_OR_RETURN(const JsonTree json, ParseJson(text, {.bytes = kMaxManifestBytes}));
  RETURN_IF_ERROR(CheckVersion(json));
  Manifest m;
  if (json.contains("part")) {
    ASSIGN_OR_RETURN(m.part, ParsePart(json["part"], "part"));
  }
  if (json.contains("base")) {
    ASSIGN_OR_RETURN(m.base, ParseBase(json["base"], "base"));
  }
  ASSIGN_OR_RETURN(const JsonTree* run, RequiredChild(json, "run", "manifest", JsonTree::value_t::object));
  RETURN_IF_ERROR(ParseRun(*run, "run", m.run));
  if (json.contains("model")) {
    ASSIGN_OR_RETURN(m.run.model, ModelIdentityFromJson(json["model"], "model"));
  }
  RETURN_IF_ERROR(ParseFiles(json, m));
  RETURN_IF_ERROR(ParseBlobs(json, m));
  ASSIGN_OR_RETURN(const JsonTree* sparse, RequiredChild(json, "sparse", "manifest", JsonTree::value_t::array));
  if (sparse->size() > kMaxSparseTables) return WrongField("sparse", absl::StrCat("at most ", kMaxSparseTables));
  std::set<std::string> names;
  for (const JsonTree& item : *sparse) {
    ASSIGN_OR_RETURN(SavedSparse t, ParseSparse(item, absl::StrCat("sparse[", m.sparse.size(), "]"), m.Shards()));
    if (!names.insert(t.config.name).second) return WrongField("sparse: " + t.config.name, "a name of its own");
    m.sparse.push_back(std::move(t));
  }
  if (json.contains("dense")) {
    ASSIGN_OR_RETURN(m.dense, ParseDense(json["dense"], "dense", m.part));
  } else if (m.part && m.part->dense.size() > 0) {
    return WrongField("part.dense", "no elements where there are no dense parameters");
  }
  if (m.Version() != json["version"]) return WrongField("manifest.version", absl::StrCat(m.Version()));
  RETURN_IF_ERROR(CheckTiling(m));
  return m;
}

}  // namespace regatta::checkpoint
