#include "program/layers/slice.h"

#include "program/test_network.h"

namespace regatta::program {
namespace {

using SliceTest = NetworkTest;

TEST_F(SliceTest, PlacesTakeTheirAxisAwayAndRangesKeepIt) {
  Variable* x = Data("x", {5, 4});
  const auto shape = [&](const std::vector<layers::SliceItem>& items) {
    return TypeText(*Must(layers::Slice(builder_, x, items)));
  };
  EXPECT_EQ(shape({{}, {.start = 1, .stop = 3}}), "float32 [-1, 2, 4]");
  EXPECT_EQ(shape({{}, {.place = 1}}), "float32 [-1, 4]");
  EXPECT_EQ(shape({{}, {.place = -1}, {.start = -2}}), "float32 [-1, 2]");
  EXPECT_EQ(shape({{}, {.step = 2}}), "float32 [-1, 3, 4]");
  EXPECT_EQ(shape({{}, {.step = -1}}), "float32 [-1, 5, 4]");
  EXPECT_EQ(OperationsText(main_),
            "Out=x_slice_0 <- slice(Input=x, axes: [1], ends: [3], starts: [1])\n"
            "Out=x_slice_1 <- slice(Input=x, axes: [1], decrease_axis: [1], ends: [2], starts: [1])\n"
            "Out=x_slice_2 <- slice(Input=x, axes: [1, 2], decrease_axis: [1], ends: [2147483647, 2147483647], starts: "
            "[-1, -2])\n"
            "Out=x_slice_3 <- strided_slice(Input=x, axes: [1], ends: [2147483647], starts: [0], strides: [2])\n"
            "Out=x_slice_4 <- strided_slice(Input=x, axes: [1], ends: [-2147483648], starts: [-1], strides: [-1])\n");
}

TEST_F(SliceTest, NothingTakenIsTheVariableItself) {
  Variable* x = Data("x", {5});
  EXPECT_EQ(Must(layers::Slice(builder_, x, {{}, {}})), x);
}

TEST_F(SliceTest, ImpossibleIndicesAreRefused) {
  Variable* x = Data("x", {5});
  builder_.set_site({"Variable.__getitem__", "train.py", 4});
  EXPECT_EQ(layers::Slice(builder_, x, {{}, {}, {}}).status().message(),
            "Variable.__getitem__ (train.py:4): there are 3 indices for float32 [-1, 5]; want 2 at most");
  EXPECT_EQ(layers::Slice(builder_, x, {{}, {.step = 0}}).status().message(),
            "Variable.__getitem__ (train.py:4): a slice's step is 0; want any other number");
  EXPECT_EQ(
      layers::Slice(builder_, x, {{}, {.place = 7}}).status().message(),
      "Variable.__getitem__ (train.py:4): slice: Input is [-1, 5]: nothing is left of axis 1 from 7 to 8; want a start "
      "before the end");
}

}  // namespace
}  // namespace regatta::program
