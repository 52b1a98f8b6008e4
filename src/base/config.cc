#include "base/config.h"

#include <filesystem>
#include <optional>

#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/scalar.h"

namespace regatta::base {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kLongestShown = 60;  // characters of a wrong value that an error repeats
constexpr size_t kMostUnknownShown = 10;

std::string Clip(std::string text) {
  if (text.size() > kLongestShown) {
    size_t end = kLongestShown;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end) + "…";
  }
  return text;
}

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "empty";
    case YamlNode::Kind::kScalar:
      return absl::StrCat("'", Clip(node.text), "'");
    case YamlNode::Kind::kList:
      return absl::StrCat("the list ", Clip(ToJsonText(node)));
    case YamlNode::Kind::kMap:
      return absl::StrCat("the section ", Clip(ToJsonText(node)));
  }
  return "";
}

std::string RangeText(std::string_view noun, bool low, bool high, std::string_view min, std::string_view max) {
  std::string text(noun);
  if (low && high) {
    absl::StrAppend(&text, " from ", View(min), " to ", View(max));
  } else if (low) {
    absl::StrAppend(&text, " of at least ", View(min));
  } else if (high) {
    absl::StrAppend(&text, " of at most ", View(max));
  }
  return text;
}

std::string Wanted(std::string_view noun, IntRange range) {
  return RangeText(noun, range.min != IntRange{}.min, range.max != IntRange{}.max, std::to_string(range.min),
                   std::to_string(range.max));
}

std::string Wanted(std::string_view noun, DoubleRange range) {
  return RangeText(noun, range.min != DoubleRange{}.min, range.max != DoubleRange{}.max, NumberText(range.min),
                   NumberText(range.max));
}

std::string ListText(const std::vector<std::string>& items) {
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

// The items of a list node through `parse`; nothing where the node is not a list or an item does not parse.
template <typename T, typename Parse>
std::optional<std::vector<T>> ParseList(const YamlNode& node, Parse parse) {
  if (node.kind != YamlNode::Kind::kList) return std::nullopt;
  std::vector<T> out;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::kScalar) return std::nullopt;
    const std::optional<T> value = parse(item.text);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

template <typename T, typename Range>
std::optional<T> Within(std::optional<T> value, Range range) {
  if (!value || *value < range.min || *value > range.max) return std::nullopt;
  return value;
}

bool IsScalar(const YamlNode& node) { return node.kind == YamlNode::Kind::kScalar; }

}  // namespace

std::string Origin::ToString() const {
  switch (kind) {
    case OriginKind::kDefault:
      return "default";
    case OriginKind::kFile:
      return absl::StrCat(name, ":", line);
    case OriginKind::kOverride:
      return "-o";
  }
  return "";
}

absl::StatusOr<Config> Config::Load(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return Annotate(text.status(), "configuration");
  return Parse(*text, path);
}

absl::StatusOr<Config> Config::Parse(std::string_view yaml, std::string_view name) {
  Config config;
  config.file_ = std::string(name);
  std::error_code error;
  const fs::path absolute = fs::absolute(fs::path(config.file_), error);
  config.folder_ = absolute.lexically_normal().parent_path().string();
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(yaml, name, {.max_bytes = kMaxFileBytes}));
  if (root.kind != YamlNode::Kind::kMap && root.kind != YamlNode::Kind::kNull) {
    return absl::InvalidArgumentError(absl::StrCat(config.file_, ":", root.line, ":", root.column,
                                                   ": a configuration is 'key: value' lines, found ", Describe(root)));
  }
  RETURN_IF_ERROR(config.Flatten("", root, Origin{OriginKind::kFile, config.file_, 0}));
  return config;
}

absl::Status Config::Flatten(const std::string& path, const YamlNode& node, Origin origin) {
  if (node.kind == YamlNode::Kind::kMap && !node.items.empty()) {
    for (size_t i = 0; i < node.items.size(); ++i) {
      if (origin.kind == OriginKind::kFile) origin.line = node.key_lines[i];
      RETURN_IF_ERROR(
          Flatten(path.empty() ? node.keys[i] : absl::StrCat(path, ".", node.keys[i]), node.items[i], origin));
    }
    return absl::OkStatus();
  }
  if (path.empty()) return absl::OkStatus();
  if (origin.kind == OriginKind::kFile) {
    // "a.b: 1" and "a: {b: 2}" name one key.
    if (const auto it = values_.find(path); it != values_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(origin.ToString(), ": key '", path, "' is given twice, on lines ",
                                                     it->second.origin.line, " and ", origin.line,
                                                     "; keep one of them"));
    }
  }
  values_[path] = Value{node, std::move(origin), "", ""};
  return absl::OkStatus();
}

absl::Status Config::Override(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string path(assignment.substr(0, equals));
  if (equals == std::string_view::npos || path.empty() || path.find_first_of(" \t\n") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o '", Clip(std::string(assignment)), "': want key=value, such as -o runner.epochs=2"));
  }
  const std::string raw(assignment.substr(equals + 1));
  const Origin origin{OriginKind::kOverride, "-o", 0};
  Erase(path);
  absl::StatusOr<YamlNode> node = ParseYaml(raw, absl::StrCat("-o ", path));
  if (!node.ok()) {
    YamlNode text;
    text.kind = YamlNode::Kind::kScalar;
    text.text = raw;
    values_[path] = Value{std::move(text), origin, raw, std::string(node.status().message())};
    return absl::OkStatus();
  }
  if (node->kind == YamlNode::Kind::kMap && !node->items.empty()) {
    if (node->flow) {
      raw_sections_[path] = raw;
      return Flatten(path, *node, origin);
    }
    // "a: b" without braces is a text with a colon, such as a command.
    node->kind = YamlNode::Kind::kScalar;
    node->text = raw;
    node->keys.clear();
    node->key_lines.clear();
    node->items.clear();
  }
  values_[path] = Value{*std::move(node), origin, raw, ""};
  return absl::OkStatus();
}

void Config::Erase(std::string_view path) {
  const std::string prefix = absl::StrCat(View(path), ".");
  values_.erase(std::string(path));
  raw_sections_.erase(std::string(path));
  auto it = values_.lower_bound(prefix);
  while (it != values_.end() && it->first.starts_with(prefix)) it = values_.erase(it);
}

bool Config::IsSection(std::string_view path) const {
  const std::string prefix = absl::StrCat(View(path), ".");
  const auto it = values_.lower_bound(prefix);
  return it != values_.end() && it->first.starts_with(prefix);
}

bool Config::Has(std::string_view path) const { return values_.find(path) != values_.end() || IsSection(path); }

std::vector<std::string> Config::Children(std::string_view section) const {
  const std::string prefix = absl::StrCat(View(section), ".");
  std::vector<std::string> names;
  for (auto it = values_.lower_bound(prefix); it != values_.end() && it->first.starts_with(prefix); ++it) {
    const std::string rest = it->first.substr(prefix.size());
    std::string name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

Origin Config::OriginOf(std::string_view path) const {
  if (const auto it = values_.find(path); it != values_.end()) return it->second.origin;
  const std::string prefix = absl::StrCat(View(path), ".");
  const auto it = values_.lower_bound(prefix);
  if (it != values_.end() && it->first.starts_with(prefix)) return it->second.origin;
  return Origin{};
}

absl::Status Config::ErrorAt(std::string_view path, std::string_view what) const {
  const auto it = values_.find(path);
  if (it == values_.end()) {
    const Origin origin = OriginOf(path);
    return absl::InvalidArgumentError(absl::StrCat(origin.kind == OriginKind::kDefault ? file_ : origin.ToString(),
                                                   ": ", View(path), ": ", View(what)));
  }
  return absl::InvalidArgumentError(absl::StrCat(it->second.origin.ToString(), ": ", View(path), " is ",
                                                 Describe(it->second.node), ": ", View(what)));
}

absl::Status Config::Wrong(std::string_view path, const Value& value, std::string_view wanted) const {
  if (!value.syntax_error.empty())
    return absl::InvalidArgumentError(absl::StrCat(value.syntax_error, "; want ", View(wanted)));
  return ErrorAt(path, absl::StrCat("want ", View(wanted)));
}

absl::StatusOr<const Config::Value*> Config::Find(std::string_view path, std::string_view wanted) const {
  if (const auto it = values_.find(path); it != values_.end()) return &it->second;
  if (IsSection(path)) return ErrorAt(path, absl::StrCat("found a section, want ", View(wanted)));
  return nullptr;
}

void Config::Use(std::string_view path, const Value* value, std::string json) {
  uses_[std::string(path)] = ConfigUse{std::string(path), std::move(json), value ? value->origin : Origin{}};
}

absl::StatusOr<int64_t> Config::Int(std::string_view path, int64_t fallback, IntRange range) {
  const std::string wanted = Wanted("an integer", range);
  ASSIGN_OR_RETURN(const Value* value, Find(path, wanted));
  if (value) {
    const auto parsed = IsScalar(value->node) ? Within(ParseInt(value->node.text), range) : std::nullopt;
    if (!parsed) return Wrong(path, *value, wanted);
    fallback = *parsed;
  }
  Use(path, value, std::to_string(fallback));
  return fallback;
}

absl::StatusOr<double> Config::Double(std::string_view path, double fallback, DoubleRange range) {
  const std::string wanted = Wanted("a number", range);
  ASSIGN_OR_RETURN(const Value* value, Find(path, wanted));
  if (value) {
    const auto parsed = IsScalar(value->node) ? Within(ParseDouble(value->node.text), range) : std::nullopt;
    if (!parsed) return Wrong(path, *value, wanted);
    fallback = *parsed;
  }
  Use(path, value, NumberText(fallback));
  return fallback;
}

absl::StatusOr<bool> Config::Bool(std::string_view path, bool fallback) {
  constexpr std::string_view kWanted = "True or False";
  ASSIGN_OR_RETURN(const Value* value, Find(path, kWanted));
  if (value) {
    const auto parsed = IsScalar(value->node) ? ParseBool(value->node.text) : std::nullopt;
    if (!parsed) return Wrong(path, *value, kWanted);
    fallback = *parsed;
  }
  Use(path, value, fallback ? "true" : "false");
  return fallback;
}

absl::StatusOr<int64_t> Config::Bytes(std::string_view path, int64_t fallback, IntRange range) {
  const std::string wanted = Wanted("a size such as 64M or 8G", range);
  ASSIGN_OR_RETURN(const Value* value, Find(path, wanted));
  if (value) {
    const auto parsed = IsScalar(value->node) ? Within(ParseBytes(value->node.text), range) : std::nullopt;
    if (!parsed) return Wrong(path, *value, wanted);
    fallback = *parsed;
  }
  Use(path, value, std::to_string(fallback));
  return fallback;
}

absl::StatusOr<std::string> Config::String(std::string_view path, std::string_view fallback) {
  std::string text(fallback);
  if (const auto raw = raw_sections_.find(path); raw != raw_sections_.end()) {
    // The override {…} was meant as text: its parts are not keys.
    text = raw->second;
    const Origin origin = OriginOf(path);
    Erase(path);
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.text = text;
    values_[std::string(path)] = Value{std::move(node), origin, text, ""};
  }
  ASSIGN_OR_RETURN(const Value* value, Find(path, "a text"));
  if (value) {
    const bool typed = value->origin.kind == OriginKind::kOverride && !value->raw.empty();  // not a part of a {map}
    if (typed && value->node.quoting != YamlNode::Quoting::kQuoted) {
      text = value->raw;
    } else if (IsScalar(value->node)) {
      text = value->node.text;
    } else if (value->node.kind == YamlNode::Kind::kNull) {
      text.clear();
    } else {
      return Wrong(path, *value, "a text");
    }
  }
  Use(path, value, QuoteJson(text));
  return text;
}

absl::StatusOr<std::string> Config::Choice(std::string_view path, std::string_view fallback,
                                           std::span<const std::string_view> choices) {
  ASSIGN_OR_RETURN(const std::string text, String(path, fallback));
  for (const std::string_view choice : choices) {
    if (EditDistance(text, choice) != 0) continue;
    Record(path, QuoteJson(choice));
    return std::string(choice);
  }
  std::vector<std::string> names(choices.begin(), choices.end());
  const std::string nearest = NearestName(text, names);
  return ErrorAt(path, absl::StrCat("want one of ", absl::StrJoin(names, ", "),
                                    nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

absl::StatusOr<std::vector<int64_t>> Config::IntList(std::string_view path, std::vector<int64_t> fallback,
                                                     IntRange range) {
  const std::string wanted = absl::StrCat("a list such as [400, 400], each ", Wanted("an integer", range));
  ASSIGN_OR_RETURN(const Value* value, Find(path, wanted));
  if (value) {
    const auto parsed =
        ParseList<int64_t>(value->node, [&](const std::string& text) { return Within(ParseInt(text), range); });
    if (!parsed) return Wrong(path, *value, wanted);
    fallback = *parsed;
  }
  std::vector<std::string> items;
  for (const int64_t item : fallback) items.push_back(std::to_string(item));
  Use(path, value, ListText(items));
  return fallback;
}

absl::StatusOr<std::vector<double>> Config::DoubleList(std::string_view path, std::vector<double> fallback,
                                                       DoubleRange range) {
  const std::string wanted = absl::StrCat("a list such as [0.1, 0.01], each ", Wanted("a number", range));
  ASSIGN_OR_RETURN(const Value* value, Find(path, wanted));
  if (value) {
    const auto parsed =
        ParseList<double>(value->node, [&](const std::string& text) { return Within(ParseDouble(text), range); });
    if (!parsed) return Wrong(path, *value, wanted);
    fallback = *parsed;
  }
  std::vector<std::string> items;
  for (const double item : fallback) items.push_back(NumberText(item));
  Use(path, value, ListText(items));
  return fallback;
}

absl::StatusOr<std::vector<std::string>> Config::StringList(std::string_view path, std::vector<std::string> fallback) {
  constexpr std::string_view kWanted = "a list of names such as [a, b]";
  ASSIGN_OR_RETURN(const Value* value, Find(path, kWanted));
  if (value) {
    const auto parsed =
        ParseList<std::string>(value->node, [](const std::string& text) { return std::optional<std::string>(text); });
    if (!parsed) return Wrong(path, *value, kWanted);
    fallback = *parsed;
  }
  std::vector<std::string> items;
  for (const std::string& item : fallback) items.push_back(QuoteJson(item));
  Use(path, value, ListText(items));
  return fallback;
}

bool Config::Ignore(std::string_view path) {
  const auto ignore = [this](const std::string& at, const Value& value) {
    // A typed reader may have been here before.
    ConfigUse& use = uses_.try_emplace(at, ConfigUse{at, ToJsonText(value.node), value.origin}).first->second;
    use.effect = ConfigUse::Effect::kNone;
  };
  bool found = false;
  if (const auto it = values_.find(path); it != values_.end()) {
    ignore(it->first, it->second);
    found = true;
  }
  const std::string prefix = absl::StrCat(View(path), ".");
  for (auto it = values_.lower_bound(prefix); it != values_.end() && it->first.starts_with(prefix); ++it) {
    ignore(it->first, it->second);
    found = true;
  }
  return found;
}

void Config::Record(std::string_view path, std::string json) {
  if (const auto it = uses_.find(path); it != uses_.end()) it->second.json = std::move(json);
}

std::vector<ConfigUse> Config::Effective() const {
  std::vector<ConfigUse> out;
  for (const auto& [path, use] : uses_) out.push_back(use);
  return out;
}

absl::Status Config::CheckAllRead(std::span<const std::string> known) const {
  std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [path, use] : uses_) names.push_back(path);
  std::vector<std::string> errors;
  size_t unread = 0;
  for (const auto& [path, value] : values_) {
    if (uses_.contains(path)) continue;
    const std::string prefix = path + ".";
    const auto below = uses_.lower_bound(prefix);
    const bool section = below != uses_.end() && below->first.starts_with(prefix);
    const bool empty = value.node.kind == YamlNode::Kind::kNull || value.node.kind == YamlNode::Kind::kMap;
    if (section && empty) continue;
    if (++unread > kMostUnknownShown) continue;
    if (section) {
      errors.push_back(std::string(ErrorAt(path, "want a section of 'key: value' lines").message()));
      continue;
    }
    const std::string nearest = NearestName(path, names);
    errors.push_back(absl::StrCat(value.origin.ToString(), ": unknown key ", Clip(path),
                                  nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
  }
  if (errors.empty()) return absl::OkStatus();
  if (unread > kMostUnknownShown) errors.push_back(absl::StrCat("… and ", unread - kMostUnknownShown, " more"));
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

}  // namespace regatta::base
