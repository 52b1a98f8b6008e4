#include "wire/packing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace regatta::wire {
namespace {

grpc::ByteBuffer KeyFrame(const std::vector<base::Key>& keys, size_t key_bytes) {
  FrameWriter writer(ps::FrameHeader(), keys.size() * key_bytes);
  AppendKeys(writer, keys, key_bytes);
  return writer.Finish();
}

TEST(Keys, TakeAsManyBytesAsTheLargestNeeds) {
  base::Rng rng(3);
  for (size_t want = 1; want <= 8; ++want) {
    const base::Key largest = ~base::Key{0} >> (64 - 8 * want);
    for (const size_t count : {size_t{1}, size_t{2}, size_t{7}, size_t{9}, size_t{1000}}) {
      std::vector<base::Key> keys(count);
      for (base::Key& key : keys) key = rng() & largest;
      keys[count / 2] = largest;
      EXPECT_EQ(KeyBytes(keys), want);
      grpc::ByteBuffer buffer = KeyFrame(keys, want);
      FrameReader reader(buffer);
      ASSERT_EQ(reader.Open(), absl::OkStatus());
      EXPECT_EQ(reader.body_left(), count * want);
      std::vector<base::Key> read(count, 77);
      ASSERT_EQ(ReadKeys(reader, want, read), absl::OkStatus());
      EXPECT_EQ(read, keys) << want << " bytes, " << count << " keys";
      EXPECT_EQ(reader.ExpectEnd(), absl::OkStatus());
    }
  }
  EXPECT_EQ(KeyBytes({}), 1u);
  EXPECT_EQ(KeyBytes(std::vector<base::Key>{0}), 1u);
}

TEST(Keys, OfAnImpossibleSizeAreRefused) {
  for (const size_t bytes : {size_t{0}, size_t{9}, size_t{1} << 40}) {
    grpc::ByteBuffer buffer = KeyFrame({1, 2, 3}, 8);
    FrameReader reader(buffer);
    ASSERT_EQ(reader.Open(), absl::OkStatus());
    std::vector<base::Key> out(3);
    EXPECT_EQ(ReadKeys(reader, bytes, out).code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
}

float ThroughTheWire(float value) {
  FrameWriter writer(ps::FrameHeader(), 2);
  AppendFloats(writer, {&value, 1}, ps::BFLOAT16);
  grpc::ByteBuffer buffer = writer.Finish();
  FrameReader reader(buffer);
  EXPECT_EQ(reader.Open(), absl::OkStatus());
  float out = 0;
  EXPECT_EQ(ReadFloats(reader, ps::BFLOAT16, {&out, 1}), absl::OkStatus());
  return out;
}

TEST(Floats, AreRoundedToTheNearestOfSixteenBits) {
  EXPECT_EQ(ThroughTheWire(1.0f), 1.0f);
  EXPECT_EQ(ThroughTheWire(-0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(ThroughTheWire(-0.0f)));
  // Eight significant bits: neighbours of 1 are 2^-7 apart, and a tie goes to the even one.
  EXPECT_EQ(ThroughTheWire(1.0f + 1.0f / 256), 1.0f);
  EXPECT_EQ(ThroughTheWire(1.0f + 3.0f / 256), 1.0f + 4.0f / 256);
  EXPECT_EQ(ThroughTheWire(std::nextafter(1.0f + 1.0f / 256, 2.0f)), 1.0f + 2.0f / 256);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ThroughTheWire(inf), inf);
  EXPECT_EQ(ThroughTheWire(-inf), -inf);
  EXPECT_EQ(ThroughTheWire(std::numeric_limits<float>::max()), inf);
  EXPECT_TRUE(std::isnan(ThroughTheWire(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(ThroughTheWire(std::bit_cast<float>(0x7F800001u)))) << "a NaN of low bits is no infinity";
  base::Rng rng(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto value = static_cast<float>(std::ldexp(rng.Uniform() - 0.5, static_cast<int>(rng.Below(200)) - 100));
    EXPECT_LE(std::abs(ThroughTheWire(value) - value), std::abs(value) / 256) << value;
  }
}

TEST(Floats, OfManyPiecesAndApartRowsArrive) {
  std::vector<float> rows(5000 * 3);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 256);
  FrameWriter writer(ps::FrameHeader(), 5000 * 2 * 2);
  AppendRows(writer, {rows.data(), 3, 2}, 0, 5000, ps::BFLOAT16);
  grpc::ByteBuffer buffer = writer.Finish();
  FrameReader reader(buffer);
  ASSERT_EQ(reader.Open(), absl::OkStatus());
  std::vector<float> together(5000 * 2);
  ASSERT_EQ(ReadRows(reader, ps::BFLOAT16, {together.data(), 2, 2}, 0, 5000), absl::OkStatus());
  EXPECT_EQ(reader.ExpectEnd(), absl::OkStatus());
  for (size_t i = 0; i < 5000; ++i)
    for (size_t j = 0; j < 2; ++j) ASSERT_EQ(together[i * 2 + j], rows[i * 3 + j]) << i;
}

}  // namespace
}  // namespace regatta::wire
