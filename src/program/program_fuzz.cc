// Any bytes as the messages of a program: refused, or a program that is written and read again as it is, and that can
// be printed, cloned, pruned and built again, operation by operation.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "program/append.h"
#include "program/clone.h"
#include "program/program_file.h"
#include "program/program_text.h"
#include "program/prune.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta::program;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = ParseProgram(bytes);
  const auto program = ParsePayload(bytes);
  if (!program.ok()) return 0;
  const std::string written = SerializePayload(**program);
  const auto again = ParsePayload(written);
  if (!again.ok() || SerializePayload(**again) != written) std::abort();
  if (ProgramText(**program) != ProgramText(**again)) std::abort();
  if (SerializePayload(*Clone(**program)) != written) std::abort();
  const auto built = Clone(**program);
  for (const auto& operation : (*program)->global_block().operations())
    if (AppendOperation(built->global_block(), *operation).ok()) built->global_block().RemoveOperations(0, 1);
  std::vector<std::string> targets;
  for (const auto& variable : (*program)->global_block().variables()) targets.push_back(variable->name);
  if (!targets.empty()) targets.erase(targets.begin(), targets.end() - 1);
  const auto pruned = InferenceProgram(**program, {}, targets);
  if (pruned.ok() && !ParseProgram(SerializeProgram(**pruned)).ok()) std::abort();
  return 0;
}
