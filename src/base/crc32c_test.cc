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

}  // namespace
}  // namespace regatta::base
