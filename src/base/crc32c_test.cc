#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace regatta::base {
namespace {

// Test vectors of RFC 3720, B.4.
TEST(Crc32c, MatchesPublishedVectors) {
  EXPECT_EQ(Crc32c(std::string(32, '\0').data(), 32), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff').data(), 32), 0x62A8AB43u);
  EXPECT_EQ(Crc32c("123456789", 9), 0xE3069283u);
}

TEST(Crc32c, LongInputEqualsItsPieces) {
  std::vector<uint8_t> bytes(100'003);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 131 + (i >> 7));
  const uint32_t whole = Crc32c(bytes.data(), bytes.size());
  uint32_t pieces = 0;
  for (size_t at = 0; at < bytes.size(); at += 777)
    pieces = Crc32c(bytes.data() + at, std::min<size_t>(777, bytes.size() - at), pieces);
  EXPECT_EQ(whole, pieces);
}

// Around the lengths from which on several streams are taken at once.
TEST(Crc32c, EveryLengthEqualsItsBytesOneByOne) {
  std::vector<uint8_t> bytes(3 * 6144);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 131 + (i >> 7));
  std::vector<uint32_t> of_first(bytes.size() + 1);
  for (size_t i = 0; i < bytes.size(); ++i) of_first[i + 1] = Crc32c(&bytes[i], 1, of_first[i]);
  for (size_t length = 0; length <= bytes.size(); length += length < 1000 ? 1 : 37)
    EXPECT_EQ(Crc32c(bytes.data(), length), of_first[length]) << length;
  for (size_t begin = 1; begin < 64; ++begin)  // anywhere in a line of the cache, and with bytes before it
    EXPECT_EQ(Crc32c(bytes.data() + begin, 1000, of_first[begin]), of_first[begin + 1000]) << begin;
  for (const size_t length : {6143, 6144, 6145, 6144 + 383, 6144 + 384, 6144 + 385, 2 * 6144})
    EXPECT_EQ(Crc32c(bytes.data(), length), of_first[length]) << length;
}

}  // namespace
}  // namespace regatta::base
