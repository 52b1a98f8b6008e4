#include "program/shape.h"

#include <gtest/gtest.h>

#include <limits>

namespace regatta::program {
namespace {

// What PaddlePaddle 1.8 makes of the same two shapes.
TEST(Shape, BroadcastsAsFluid) {
  const struct {
    Shape x, y;
    int64_t axis;
    Shape want;
  } cases[] = {
      {{2, 3, 4, 5}, {3, 4}, 1, {2, 3, 4, 5}},
      {{2, 3, 4, 5}, {5}, -1, {2, 3, 4, 5}},
      {{-1, 3}, {1}, -1, {-1, 3}},
      {{-1, 3}, {-1, 1}, -1, {-1, 3}},
      {{-1, 3}, {-1, 1}, 0, {-1, 3}},
      {{-1, 3}, {-1}, 0, {-1, 3}},
      {{3}, {-1, 3}, -1, {-1, 3}},
      {{2, 3, 4}, {2, 1}, 0, {2, 3, 4}},
      {{2, 3, 4}, {3, 1}, 1, {2, 3, 4}},
      {{-1, 1}, {-1, 8}, -1, {-1, 8}},
      {{-1, 1}, {3}, -1, {-1, 3}},
      {{-1}, {5}, -1, {5}},
      {{2, 3, 4}, {2, 3, 4}, 1, {2, 3, 4}},
      {{-1, 3}, {2, 3}, -1, {2, 3}},
      {{2, 1, 5}, {3, 1}, -1, {2, 3, 5}},
      {{2, 3, 4}, {4, 1}, 2, {2, 3, 4}},
  };
  for (const auto& c : cases) {
    const absl::StatusOr<Shape> got = BroadcastShapes(c.x, c.y, c.axis);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, c.want) << ShapeText(c.x) << ShapeText(c.y) << c.axis;
  }
}

TEST(Shape, SaysWhyShapesDoNotBroadcast) {
  EXPECT_EQ(
      BroadcastShapes({-1, 13}, {12}, -1).status().message(),
      "X is [-1, 13] and Y is [12]: 13 and 12 differ at axis 1; an extent must be equal or 1 (layers.reshape changes "
      "a shape)");
  EXPECT_EQ(BroadcastShapes({2, 3}, {3}, 3).status().message(),
            "X is [2, 3] and Y is [3]: with axis 3 the shorter one does not fit; leave axis out, or make it 1 at most");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(ElementCount({2, 3}), 6);
  EXPECT_EQ(ElementCount({2, -1}), -1);
  EXPECT_EQ(ElementCount({int64_t{1} << 40, int64_t{1} << 40}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(AsMatrix({4, 5, 6}, 1), std::pair(int64_t{4}, int64_t{30}));
}

}  // namespace
}  // namespace regatta::program
