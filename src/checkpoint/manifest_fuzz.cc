// Any text as a manifest: refused, or one that says the same after being written again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta::checkpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseManifest(text, ManifestChecksum::kCheck);
  const absl::StatusOr<Manifest> manifest = ParseManifest(text, ManifestChecksum::kIgnore);
  if (!manifest.ok()) return 0;
  const absl::StatusOr<Manifest> again = ParseManifest(FormatManifest(*manifest));
  if (!again.ok() || *again != *manifest) std::abort();
  return 0;
}
