#include "exec/variable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/file.h"

namespace regatta::exec {
namespace {

using testing::HasSubstr;

LodTensor SomeVariable() {
  return {torch::arange(6, torch::kInt64).reshape({3, 2}), Lod::Make({{0, 1, 2}, {0, 2, 3}}, 3).value()};
}

// With a checksum that fits, as a hostile file has it.
std::string Sealed(std::string bytes) {
  const uint32_t checksum = base::Crc32c(bytes.data() + 12, bytes.size() - 12);
  std::memcpy(bytes.data() + 8, &checksum, sizeof(checksum));
  return bytes;
}

TEST(VariableFile, BytesGiveTheSameVariable) {
  for (const torch::ScalarType type : {torch::kBool, torch::kUInt8, torch::kInt32, torch::kFloat16, torch::kFloat64})
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{}, {1}, {3, 0, 2}, {2, 3}}) {
      const LodTensor value{torch::ones(shape, torch::TensorOptions(type)), {}};
      const auto read = ParseVariable(SerializeVariable(value));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->tensor.scalar_type(), type);
      EXPECT_TRUE(torch::equal(read->tensor, value.tensor));
    }
  const auto read = ParseVariable(SerializeVariable(SomeVariable()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(torch::equal(read->tensor, SomeVariable().tensor));
  EXPECT_EQ(read->lod, SomeVariable().lod);
}

TEST(VariableFile, EveryDamagedByteAndEveryLengthIsAnError) {
  const std::string bytes = SerializeVariable(SomeVariable());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(ParseVariable(damaged).ok()) << "byte " << i;
    EXPECT_FALSE(ParseVariable(std::string_view(bytes).substr(0, i)).ok()) << "length " << i;
  }
  EXPECT_FALSE(ParseVariable(bytes + "x").ok());
}

TEST(VariableFile, SizesThatAreOnlyClaimedTakeNoMemory) {
  const std::string bytes = SerializeVariable(SomeVariable());
  // The element type, the number of extents, an extent, the number of levels, the size of a level.
  for (const size_t at : {12, 16, 20, 28, 36, 40}) {
    for (const uint64_t claimed : {uint64_t{0x7fffffff}, uint64_t{1} << 62, ~uint64_t{0}}) {
      std::string hostile = bytes;
      std::memcpy(hostile.data() + at, &claimed, at == 20 || at == 28 || at == 40 ? 8 : 4);
      EXPECT_FALSE(ParseVariable(Sealed(hostile)).ok()) << at << " " << claimed;
    }
  }
}

TEST(VariableFile, NamesOfVariablesStayInTheirFolder) {
  EXPECT_EQ(VariableFileName("fc_0.w_0"), "fc_0.w_0");
  EXPECT_EQ(VariableFileName("../a%/b"), "%2E.%2Fa%25%2Fb");
  EXPECT_EQ(VariableFileName(".."), "%2E.");
}

}  // namespace
}  // namespace regatta::exec
