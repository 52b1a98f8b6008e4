#include "worker/best_epoch.h"

#include <bit>
#include <cstring>

namespace regatta::worker {
namespace {

constexpr char kBestBlob[] = "best_validation";

}  // namespace

std::array<uint64_t, 2> NumbersOf(const std::optional<BestEpoch>& best) {
  if (!best.has_value()) return {0, 0};
  return {best->epoch + 1, std::bit_cast<uint64_t>(best->score)};
}

std::optional<BestEpoch> BestOf(std::span<const uint64_t, 2> numbers) {
  if (numbers[0] == 0) return std::nullopt;
  return BestEpoch{numbers[0] - 1, std::bit_cast<double>(numbers[1])};
}

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

}  // namespace regatta::worker
