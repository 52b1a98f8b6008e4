#include "program/unique_name.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace regatta::program {

std::string NameGenerator::Generate(std::string_view key) {
  auto found = counts_.find(key);
  if (found == counts_.end()) found = counts_.emplace(key, 0).first;
  return absl::StrCat(prefix_, base::View(key), "_", found->second++);
}

}  // namespace regatta::program
