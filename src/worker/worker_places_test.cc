#include "worker/worker_places.h"

#include <gtest/gtest.h>

namespace regatta::worker {
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

TEST(WorkerPlaces, BytesThatEndTooEarlyAreDamage) {
  const std::string bytes = EncodePlaces(TwoPlaces());
  const size_t one = EncodePlaces({*TwoPlaces().begin()}).size();
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto places = DecodePlaces(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(places.status().code(), size == one ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss) << size;
  }
}

}  // namespace
}  // namespace regatta::worker
