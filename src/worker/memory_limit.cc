#include "worker/memory_limit.h"

#include <glog/logging.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "metrics/process_load.h"

namespace regatta::worker {
namespace {

std::string Gigabytes(uint64_t bytes) { return absl::StrFormat("%.2f GB", static_cast<double>(bytes) / 1e9); }

}  // namespace

absl::Status MemoryLimit::Check() const {
  const uint64_t resident = metrics::ResidentBytes();
  const auto limit = static_cast<uint64_t>(job_.run.runner.max_memory);
  if (resident < limit) return absl::OkStatus();
  const std::string rows = job_.alone() ? absl::StrCat("; the tables have ", job_.embedded().rows(), " rows") : "";
  return absl::ResourceExhaustedError(absl::StrCat("the process holds ", Gigabytes(resident),
                                                   ", the limit runner.max_memory is ", Gigabytes(limit), rows,
                                                   ". Raise the limit, or use a smaller dimension"));
}

void MemoryLimit::LogEstimate() const {
  uint64_t row_bytes = 0;
  for (const table::SparseTable* table : job_.embedded().sparse()) row_bytes += fleet::EstimateRowBytes(*table);
  LOG(INFO) << "memory: " << Gigabytes(metrics::ResidentBytes()) << " now, about " << row_bytes
            << " bytes more a distinct id (" << Gigabytes(row_bytes * 1'000'000) << " a million ids)";
  if (!set()) return;
  const auto limit = static_cast<uint64_t>(job_.run.runner.max_memory);
  LOG(INFO) << "memory: runner.max_memory " << Gigabytes(limit) << " leaves room for about "
            << (limit - std::min(metrics::ResidentBytes(), limit)) / std::max<uint64_t>(row_bytes, 1)
            << " distinct ids";
}

}  // namespace regatta::worker
