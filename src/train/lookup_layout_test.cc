#include "train/lookup_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace regatta::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NetSpec SlotsSpec() {
  NetSpec spec;
  spec.schema.sparse_slots = {"a", "b", "c", "d"};
  return spec;
}

TEST(LookupLayout, LookupsOfAllSlotsShareOnePlan) {
  NetSpec spec = SlotsSpec();
  spec.AddEmbedding({.table = "w", .dim = 1, .init = {}});
  spec.AddEmbedding({.table = "v", .dim = 8, .init = {}});
  const LookupLayout layout(spec);
  EXPECT_THAT(layout.slot_sets, ElementsAre(ElementsAre(0, 1, 2, 3)));
  ASSERT_EQ(layout.tables.size(), 2u);
  EXPECT_EQ(layout.tables[1].name, "v");
  EXPECT_TRUE(layout.lookups[0].whole && layout.lookups[1].whole);
}

TEST(LookupLayout, ATableIsPlannedForTheSlotsOfAllItsLookups) {
  NetSpec spec = SlotsSpec();
  spec.AddEmbedding({.table = "x", .dim = 2, .init = {}, .slots = {"c", "a"}});
  spec.AddEmbedding({.table = "y", .dim = 2, .init = {}, .slots = {"d"}});
  spec.AddEmbedding({.table = "x", .dim = 2, .init = {}, .slots = {"b", "c"}});
  const LookupLayout layout(spec);
  EXPECT_THAT(layout.slot_sets, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
  ASSERT_EQ(layout.tables.size(), 2u);
  EXPECT_THAT(layout.tables[0].lookups, ElementsAre(0, 2));
  EXPECT_THAT(layout.lookups[0].chosen, ElementsAre(2, 0)) << "in the order of the declaration";
  EXPECT_THAT(layout.lookups[2].chosen, ElementsAre(1, 2));
  EXPECT_FALSE(layout.lookups[0].whole);
  EXPECT_TRUE(layout.lookups[1].whole);
  EXPECT_EQ(spec.width(0), 4);
}

TEST(NetSpec, ALookupThatCannotBeIsAnError) {
  const auto error = [](LookupSpec first, LookupSpec second) {
    NetSpec spec = SlotsSpec();
    spec.AddEmbedding(std::move(first));
    spec.AddEmbedding(std::move(second));
    return std::string(CheckNetSpec(spec).message());
  };
  const LookupSpec right{.table = "x", .dim = 2, .init = {}, .slots = {"a"}};
  EXPECT_EQ(error(right, right), "");
  LookupSpec wrong = right;
  wrong.slots = {"e"};
  EXPECT_THAT(error(right, wrong), HasSubstr("of slot 'e'; the slots are a, b, c, d"));
  wrong.slots = {"a", "a"};
  EXPECT_THAT(error(right, wrong), HasSubstr("names the slot 'a' twice"));
  wrong = right;
  wrong.dim = 3;
  EXPECT_THAT(error(right, wrong), HasSubstr("two embeddings in table 'x', of 2 and 3 floats a row"));
  wrong = right;
  wrong.init = Init::Uniform(1);
  EXPECT_THAT(error(right, wrong), HasSubstr("different initial values"));
  wrong = right;
  wrong.l2 = 1;
  EXPECT_THAT(error(right, wrong), HasSubstr("l2 0 and 1"));
  wrong = right;
  wrong.pooling = base::Pooling::kNone;
  wrong.dense_columns = DenseColumns::kAppended;
  EXPECT_THAT(error(right, wrong), HasSubstr("without pooling has no place for dense features"));
}

}  // namespace
}  // namespace regatta::train
