// Any text as a configuration: parsed, read by everyone, printed. Lines after the first 0x1e are -o overrides.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/config.h"
#include "base/params.h"
#include "settings/run_config.h"
#include "settings/table_parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find('\x1e');
  auto config = base::Config::Parse(text.substr(0, cut), "/jobs/rank/dnn/config.yaml");
  if (!config.ok()) return 0;
  for (std::string_view rest = cut == text.npos ? "" : text.substr(cut + 1); !rest.empty();) {
    const size_t end = rest.find('\x1e');
    (void)config->Override(rest.substr(0, end));
    rest = end == rest.npos ? "" : rest.substr(end + 1);
  }
  settings::Remarks remarks;
  const auto run = settings::ParseRunConfig(
      *config, size % 2 == 0 ? settings::Deployment::kStandalone : settings::Deployment::kWithServers, remarks);
  base::Params params(*config, "hyper_parameters");
  params.Int("sparse_inputs_slots", {.min = 1}, 27);
  params.Int("sparse_feature_dim", {.min = 1, .max = 4096}, 9);
  params.IntList("fc_sizes", {.min = 1}, {});
  params.String("activation", "relu");
  const table::RuleConfig rule = run.ok() ? run->optimizer.sparse : table::RuleConfig{};
  (void)settings::RuleFor(*config, "embedding", rule, remarks);
  (void)settings::CheckNoUnknown(*config, remarks);
  (void)settings::ConfigText(*config);
  (void)settings::ConfigJson(*config);
  return 0;
}
