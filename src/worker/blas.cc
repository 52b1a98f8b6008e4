#include "worker/blas.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/freed_memory.h"
#include "model/tensor.h"

namespace regatta::worker {
namespace {

constexpr char kCoreType[] = "OPENBLAS_CORETYPE";

template <typename Fn>
Fn* Find(const char* symbol) {
  return reinterpret_cast<Fn*>(dlsym(RTLD_DEFAULT, symbol));
}

const char* BestCoreType() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

}  // namespace

void UseKernelsOfThisCpu(char** argv) {
  if (std::getenv(kCoreType) != nullptr) return;
  auto* core_name = Find<char*()>("openblas_get_corename");
  if (core_name == nullptr) return;
  const std::string_view core = core_name();
  const bool fallback = core == "Prescott" || core == "Core2" || core == "Generic" || core == "Katmai";
  const char* best = BestCoreType();
  if (!fallback || best == nullptr) return;
  setenv(kCoreType, best, 1);
  execv("/proc/self/exe", argv);  // where this fails the program goes on, slower
}

void SetLibraryDefaults() {
  base::KeepFreedMemory();
  if (auto* set_threads = Find<void(int)>("openblas_set_num_threads"); set_threads != nullptr) set_threads(1);
  at::set_num_threads(1);
}

}  // namespace regatta::worker
