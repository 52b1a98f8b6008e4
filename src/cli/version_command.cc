#include "cli/version_command.h"

#include "absl/strings/str_cat.h"
#include "cli/build_info.h"

namespace regatta::cli {
namespace {

struct Feature {
  const char* name;
  bool on;
};

constexpr Feature kFeatures[] = {
#if defined(__x86_64__)
    {"with_avx", true},  // hot loops are compiled for AVX2 too; the loader picks them where the CPU has it
#else
    {"with_avx", false},
#endif
    {"with_gpu", false},  {"with_double", false}, {"with_python", kWithPython},
    {"with_rdma", false}, {"with_timer", true},  // train --trace
};

}  // namespace

std::string VersionText() {
  std::string text = absl::StrCat("Regatta ", kVersion, ", compiled with\n");
  for (const Feature& feature : kFeatures)
    absl::StrAppend(&text, "    ", feature.name, ": ", feature.on ? "ON" : "OFF", "\n");
  absl::StrAppend(&text, "    commit: ", kCommit, "\n    compiler: ", kCompiler, "\n    libtorch: ", kLibtorch,
                  "\n    gRPC: ", kGrpc, "\n");
  return text;
}

}  // namespace regatta::cli
