// Names as Fluid makes them: a key and a count of that key, "fc_0", "fc_0.w_0", "_generated_var_3".
// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace regatta::program {

class NameGenerator {
 public:
  // `prefix` stands before every name (unique_name.guard("prefix")).
  explicit NameGenerator(std::string prefix = "") : prefix_(std::move(prefix)) {}

  // "<prefix><key>_<n>", n counting the calls with this key from 0.
  std::string Generate(std::string_view key);

 private:
  std::string prefix_;
  std::map<std::string, int64_t, std::less<>> counts_;
};

}  // namespace regatta::program
