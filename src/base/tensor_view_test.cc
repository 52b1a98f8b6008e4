#include "base/tensor_view.h"

#include <gtest/gtest.h>

namespace regatta::base {
namespace {

TEST(TensorView, ContiguousMemoryHasRowMajorStrides) {
  const std::vector<float> values(24);
  const TensorView view = TensorView::Of(values.data(), std::vector<int64_t>{2, 3, 4});
  EXPECT_EQ(view.dims, 3);
  EXPECT_EQ(view.strides, (std::array<int64_t, 8>{12, 4, 1}));
  EXPECT_EQ(view.count(), 24);
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view.ShapeText(), "[2, 3, 4]");
  EXPECT_EQ(view.floats().size(), 24u);
  EXPECT_STREQ(Name(view.dtype), "float32");
}

TEST(TensorView, AScalarHasOneElementAndAnEmptyViewNoMemory) {
  const float value = 3;
  const TensorView scalar = TensorView::Of(&value, {});
  EXPECT_EQ(scalar.count(), 1);
  EXPECT_EQ(scalar.ShapeText(), "[]");
  EXPECT_FALSE(scalar.empty());
  EXPECT_TRUE(TensorView().empty());
}

TEST(TensorView, OtherStridesAreNotContiguousUnlessTheExtentIsOne) {
  const std::vector<float> values(8);
  TensorView view = TensorView::Matrix(values.data(), 2, 2);
  view.strides[0] = 4;
  EXPECT_FALSE(view.contiguous());
  view.shape[0] = 1;
  EXPECT_TRUE(view.contiguous());
  view.strides[1] = 0;
  EXPECT_FALSE(view.contiguous()) << "an expanded value";
  view.shape[1] = 0;
  EXPECT_TRUE(view.contiguous()) << "no element";
}

TEST(TensorView, ShapesAreEqualIfAllExtentsAre) {
  const std::vector<float> values(8);
  const TensorView view = TensorView::Matrix(values.data(), 4, 2);
  EXPECT_TRUE(view.SameShape(TensorView::Matrix(nullptr, 4, 2)));
  EXPECT_FALSE(view.SameShape(TensorView::Matrix(nullptr, 2, 4)));
  EXPECT_FALSE(view.SameShape(TensorView::Vector(nullptr, 4)));
}

}  // namespace
}  // namespace regatta::base
