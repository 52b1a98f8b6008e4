#include "run/worker_places.h"

#include <gtest/gtest.h>

namespace regatta::run {
namespace {

WorkerPlaces TwoPlaces() {
  return {{0, {{.pass = 3, .low = 40, .window = 5}, 77, "meter"}}, {1, {{.pass = 3, .low = 9, .window = 0}, 78, ""}}};
}

TEST(WorkerPlaces, GoIntoASaveAndComeBack) {
  checkpoint::RunState run;
  EXPECT_TRUE(PlacesFrom(run).value().empty()) << "of one process";
  PutPlaces(TwoPlaces(), run);
  const WorkerPlaces back = PlacesFrom(run).value();
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back.at(0).position, (base::DataPosition{3, 40, 5}));
  EXPECT_EQ(back.at(0).settings_hash, 77u);
  EXPECT_EQ(back.at(0).meter, "meter");
  EXPECT_EQ(back.at(1).position.low, 9u);
  EXPECT_EQ(MostBatches(back), 42u);
  EXPECT_EQ(AllBatches(back), 51u);
}

// docs/format/checkpoint.md, blob `workers`.
TEST(WorkerPlaces, OnlyAWideWindowTakesMoreBytes) {
  const std::string narrow = EncodePlace({{.pass = 3, .low = 40, .window = 5}, 77, "meter"});
  const uint64_t numbers[] = {3, 40, 5, 77};
  EXPECT_EQ(narrow, std::string(reinterpret_cast<const char*>(numbers), sizeof numbers) + "meter");
  for (const size_t words : {size_t{1}, base::DataPosition::kMaxBeyond}) {
    WorkerPlace wide{{.pass = 3, .low = 40, .window = 4, .beyond = std::vector<uint64_t>(words, 6)}, 77, "meter"};
    const WorkerPlace back = DecodePlace(EncodePlace(wide)).value();
    EXPECT_EQ(back.position, wide.position);
    EXPECT_EQ(back.settings_hash, 77u);
    EXPECT_EQ(back.meter, "meter");
    EXPECT_EQ(back.batches(), 41 + 2 * words);
    wide.position.beyond.resize(base::DataPosition::kMaxBeyond + 1, 1);
    EXPECT_EQ(DecodePlace(EncodePlace(wide)).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(WorkerPlaces, BytesThatEndTooEarlyAreDamage) {
  WorkerPlaces places = TwoPlaces();
  places.at(1).position.beyond = {1, 2};
  const std::string bytes = EncodePlaces(places);
  const size_t one = EncodePlaces({*places.begin()}).size();
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto decoded = DecodePlaces(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(decoded.status().code(), size == one ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss) << size;
  }
}

}  // namespace
}  // namespace regatta::run
