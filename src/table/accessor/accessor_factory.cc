#include "table/accessor/accessor_factory.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "table/accessor/plain_accessor.h"

namespace regatta::table {
namespace {

struct AccessorEntry {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<Accessor>> (*make)(const SparseTableConfig&);
};

constexpr AccessorEntry kAccessors[] = {
    {"plain", &MakePlainAccessor},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Accessor>> MakeAccessor(const SparseTableConfig& config) {
  std::string names;
  for (const AccessorEntry& entry : kAccessors) {
    if (entry.name == config.accessor) return entry.make(config);
    absl::StrAppend(&names, names.empty() ? "" : ", ", base::View(entry.name));
  }
  return absl::InvalidArgumentError(absl::StrCat("accessor: there is no '", config.accessor, "'; use one of ", names));
}

}  // namespace regatta::table
