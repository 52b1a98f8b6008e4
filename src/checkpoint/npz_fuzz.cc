// Any bytes as an .npz: refused, or arrays whose data is as long as their shape says.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "checkpoint/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta::checkpoint;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)ParseNpy(bytes);
  const absl::StatusOr<NpzReader> npz = NpzReader::FromBytes(bytes);
  if (!npz.ok()) return 0;
  for (const std::string& name : npz->names()) {
    (void)npz->Describe(name);
    const absl::StatusOr<NpyArray> array = npz->Read(name);
    if (!array.ok()) continue;
    const uint64_t item = std::strtoull(array->dtype.c_str() + 2, nullptr, 10);
    if (array->elements() * item != array->data.size()) std::abort();
  }
  return 0;
}
