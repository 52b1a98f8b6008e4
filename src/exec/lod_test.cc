#include "exec/lod.h"

#include <gtest/gtest.h>

namespace regatta::exec {
namespace {

std::string Refusal(std::vector<Lod::Offsets> levels, int64_t rows) {
  return std::string(Lod::Make(std::move(levels), rows).status().message());
}

TEST(LodTest, LevelsFitOneAnotherAndTheRows) {
  const absl::StatusOr<Lod> lod = Lod::Make({{0, 2, 3}, {0, 1, 1, 6}}, 6);
  ASSERT_TRUE(lod.ok()) << lod.status();
  EXPECT_EQ(lod->Text(), "[[0, 2, 3], [0, 1, 1, 6]]");
  EXPECT_EQ(lod->last(), (Lod::Offsets{0, 1, 1, 6}));
  EXPECT_EQ(lod->First(1).Text(), "[[0, 2, 3]]");
  EXPECT_TRUE(Lod::Make({}, 5)->empty());
  EXPECT_EQ(*lod, *Lod::Make({{0, 2, 3}, {0, 1, 1, 6}}, 6));
  EXPECT_FALSE(*lod == Lod());
}

TEST(LodTest, RefusesOffsetsThatDoNotFit) {
  EXPECT_EQ(Refusal({{1, 2}}, 2),
            "level 0 of the LoD must begin with 0 and have an end for each sequence, as [0, 2, 3] does");
  EXPECT_EQ(Refusal({{0}}, 0),
            "level 0 of the LoD must begin with 0 and have an end for each sequence, as [0, 2, 3] does");
  EXPECT_EQ(Refusal({{0, 3, 2, 4}}, 4), "level 0 of the LoD goes from 3 back to 2; offsets must not decrease");
  EXPECT_EQ(Refusal({{0, 2, 5}}, 4), "level 0 of the LoD ends at 5; it must end at 4, the number of rows");
  EXPECT_EQ(Refusal({{0, 3}, {0, 1, 4}}, 4),
            "level 0 of the LoD ends at 3; it must end at 2, the sequences of the next level");
}

}  // namespace
}  // namespace regatta::exec
