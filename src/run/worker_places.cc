#include "run/worker_places.h"

#include <algorithm>
#include <vector>

#include "metrics/byte_codec.h"

namespace regatta::run {
namespace {

constexpr char kPlacesBlob[] = "workers";
constexpr uint64_t kWide = uint64_t{1} << 63;  // in a pass: the window has words beyond the first

absl::Status GetBeyond(metrics::ByteReader& in, base::DataPosition& position) {
  uint64_t words = 0;
  RETURN_IF_ERROR(in.Get(words));
  if (words > base::DataPosition::kMaxBeyond)
    return absl::DataLossError(absl::StrCat("the place of a worker has a window of ", words, " words more, at most ",
                                            base::DataPosition::kMaxBeyond, " can be"));
  std::vector<uint64_t> beyond(words);
  for (uint64_t& word : beyond) RETURN_IF_ERROR(in.Get(word));
  position.SetBeyond(beyond);
  return absl::OkStatus();
}

}  // namespace

std::string EncodePlace(const WorkerPlace& place) {
  std::string bytes;
  const std::vector<uint64_t>& beyond = place.position.beyond;
  metrics::PutBytes(bytes, place.position.pass | (beyond.empty() ? 0 : kWide));
  metrics::PutBytes(bytes, place.position.low);
  metrics::PutBytes(bytes, place.position.window);
  metrics::PutBytes(bytes, place.settings_hash);
  if (!beyond.empty()) metrics::PutBytes(bytes, static_cast<uint64_t>(beyond.size()));
  for (const uint64_t word : beyond) metrics::PutBytes(bytes, word);
  return bytes + place.meter;
}

absl::StatusOr<WorkerPlace> DecodePlace(std::string_view bytes) {
  WorkerPlace place;
  metrics::ByteReader in(bytes);
  RETURN_IF_ERROR(in.Get(place.position.pass));
  RETURN_IF_ERROR(in.Get(place.position.low));
  RETURN_IF_ERROR(in.Get(place.position.window));
  RETURN_IF_ERROR(in.Get(place.settings_hash));
  if (place.position.pass & kWide) {
    place.position.pass ^= kWide;
    RETURN_IF_ERROR(GetBeyond(in, place.position));
  }
  place.meter = std::string(bytes.substr(bytes.size() - in.left()));
  return place;
}

std::string EncodePlaces(const WorkerPlaces& places) {
  std::string bytes;
  for (const auto& [rank, place] : places) {
    const std::string one = EncodePlace(place);
    metrics::PutBytes(bytes, static_cast<uint32_t>(rank));
    metrics::PutBytes(bytes, static_cast<uint32_t>(one.size()));
    bytes += one;
  }
  return bytes;
}

absl::StatusOr<WorkerPlaces> DecodePlaces(std::string_view bytes) {
  WorkerPlaces places;
  while (!bytes.empty()) {
    uint32_t rank = 0, size = 0;
    metrics::ByteReader in(bytes);
    RETURN_IF_ERROR(in.Get(rank));
    RETURN_IF_ERROR(in.Get(size));
    bytes.remove_prefix(bytes.size() - in.left());
    if (bytes.size() < size) return absl::DataLossError("the places of the workers end too early");
    ASSIGN_OR_RETURN(places[static_cast<int>(rank)], DecodePlace(bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  return places;
}

void PutPlaces(const WorkerPlaces& places, checkpoint::RunState& run) { run.blobs[kPlacesBlob] = EncodePlaces(places); }

absl::StatusOr<WorkerPlaces> PlacesFrom(const checkpoint::RunState& run) {
  const auto blob = run.blobs.find(kPlacesBlob);
  if (blob == run.blobs.end()) return WorkerPlaces{};
  return DecodePlaces(blob->second);
}

uint64_t MostBatches(const WorkerPlaces& places) {
  uint64_t most = 0;
  for (const auto& [rank, place] : places) most = std::max(most, place.batches());
  return most;
}

uint64_t AllBatches(const WorkerPlaces& places) {
  uint64_t all = 0;
  for (const auto& [rank, place] : places) all += place.batches();
  return all;
}

}  // namespace regatta::run
