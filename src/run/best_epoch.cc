#include "run/best_epoch.h"

#include <cstring>

namespace regatta::run {
namespace {

constexpr char kBestBlob[] = "best_validation";

}  // namespace

void PutBest(const std::optional<BestEpoch>& best, checkpoint::RunState& run) {
  if (!best.has_value()) return;
  std::string blob(sizeof(double) + sizeof(uint64_t), '\0');
  std::memcpy(blob.data(), &best->score, sizeof(double));
  std::memcpy(blob.data() + sizeof(double), &best->epoch, sizeof(uint64_t));
  run.blobs[kBestBlob] = blob;
}

std::optional<BestEpoch> BestFrom(const checkpoint::RunState& run) {
  const auto blob = run.blobs.find(kBestBlob);
  if (blob == run.blobs.end() || blob->second.size() != sizeof(double) + sizeof(uint64_t)) return std::nullopt;
  BestEpoch best;
  std::memcpy(&best.score, blob->second.data(), sizeof(double));
  std::memcpy(&best.epoch, blob->second.data() + sizeof(double), sizeof(uint64_t));
  return best;
}

}  // namespace regatta::run
