// The configuration of a run: YAML flattened to dotted paths, each value with its origin. Readers ask for a path with
// a type, a range and a default; what was asked for and what it came to is remembered, so that the effective
// configuration can be printed and a key that nobody asked for is reported with the nearest known name.
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/yaml.h"

namespace regatta::base {

enum class OriginKind : uint8_t { kDefault, kFile, kOverride };

struct Origin {
  OriginKind kind = OriginKind::kDefault;
  std::string name;  // the file
  int line = 0;

  // "default", "config.yaml:12", "-o".
  std::string ToString() const;
};

struct IntRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

struct DoubleRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
};

// A value as some reader took it.
struct ConfigUse {
  enum class Effect : uint8_t { kUsed, kNone };
  std::string path;
  std::string json;  // the effective value
  Origin origin;
  Effect effect = Effect::kUsed;
};

class Config {
 public:
  // At most 1 MiB and 32 levels. Errors name file:line:column.
  static absl::StatusOr<Config> Load(const std::string& path);
  static absl::StatusOr<Config> Parse(std::string_view yaml, std::string_view name);

  // "key=value" as given to -o. The value is YAML; a later one wins over an earlier one and over the file.
  absl::Status Override(std::string_view assignment);

  const std::string& file() const { return file_; }
  // The folder of the file, absolute; relative paths of the configuration start there.
  const std::string& folder() const { return folder_; }

  // Whether the file or an override sets `path`, as a value or as a section.
  bool Has(std::string_view path) const;
  // Names directly below a section, sorted.
  std::vector<std::string> Children(std::string_view section) const;
  Origin OriginOf(std::string_view path) const;

  // Each getter returns `fallback` where the path is absent, and an error that names the origin, the key, what was
  // found and what is wanted where it does not fit. Quoted numbers are numbers.
  absl::StatusOr<int64_t> Int(std::string_view path, int64_t fallback, IntRange range = {});
  absl::StatusOr<double> Double(std::string_view path, double fallback, DoubleRange range = {});
  absl::StatusOr<bool> Bool(std::string_view path, bool fallback);
  // A scalar keeps its spelling: -o key=false gives "false", key= gives "".
  absl::StatusOr<std::string> String(std::string_view path, std::string_view fallback);
  // One of `choices`, compared without case; the spelling of the choice is returned.
  absl::StatusOr<std::string> Choice(std::string_view path, std::string_view fallback,
                                     std::span<const std::string_view> choices);
  // A number of bytes: 1000, 64K, 8G, 8GiB (powers of 1024).
  absl::StatusOr<int64_t> Bytes(std::string_view path, int64_t fallback, IntRange range = {});
  absl::StatusOr<std::vector<int64_t>> IntList(std::string_view path, std::vector<int64_t> fallback,
                                               IntRange range = {});
  absl::StatusOr<std::vector<double>> DoubleList(std::string_view path, std::vector<double> fallback,
                                                 DoubleRange range = {});
  absl::StatusOr<std::vector<std::string>> StringList(std::string_view path, std::vector<std::string> fallback);

  // Accepts `path`, and all below it, whatever it holds, as a key without effect. False where it is not set.
  bool Ignore(std::string_view path);
  // An error about `path` in the getters' form: "config.yaml:3: runner.use_gpu is true: <what>".
  absl::Status ErrorAt(std::string_view path, std::string_view what) const;
  // Replaces what a reader recorded for `path`: a default that follows from another key, a path made absolute.
  void Record(std::string_view path, std::string json);

  // Everything read so far, by path.
  std::vector<ConfigUse> Effective() const;
  // An error that lists every value nobody read, each with the nearest of the names read or in `known`.
  absl::Status CheckAllRead(std::span<const std::string> known = {}) const;

 private:
  struct Value {
    YamlNode node;
    Origin origin;
    std::string raw;           // as typed, of an override
    std::string syntax_error;  // why `raw` is not YAML; it still serves a string key
  };

  Config() = default;
  absl::Status Flatten(const std::string& path, const YamlNode& node, Origin origin);
  void Erase(std::string_view path);
  // nullptr where absent; an error where `path` is a section. `wanted` describes the type.
  absl::StatusOr<const Value*> Find(std::string_view path, std::string_view wanted) const;
  bool IsSection(std::string_view path) const;
  absl::Status Wrong(std::string_view path, const Value& value, std::string_view wanted) const;
  void Use(std::string_view path, const Value* value, std::string json);

  std::string file_;
  std::string folder_;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> raw_sections_;  // overrides whose text was a {map}
  std::map<std::string, ConfigUse, std::less<>> uses_;
};

}  // namespace regatta::base
