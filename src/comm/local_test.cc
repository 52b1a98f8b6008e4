#include "comm/local.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::comm {
namespace {

TEST(Local, OneThreadSeesTheDenseParametersInPlaceAndManySeeSnapshots) {
  table::DenseTableConfig config;
  config.parameters = {{"w", {6}, {"uniform", -1, 1}}};
  config.rule.name = "sgd";
  const auto dense = table::DenseTable::Create(config).value();
  client::LocalClient client({}, dense.get(), table::NanPolicy::kAbort);
  Local one(client, 1), two(client, 2);
  base::StepRows rows;
  ASSERT_TRUE(one.Pull({}, &rows).ok());
  EXPECT_EQ(rows.dense.data(), dense->Values().data());
  ASSERT_TRUE(two.Pull({.step = 0, .thread = 1, .kind = base::StepKind::kTrain, .tables = {}}, &rows).ok());
  EXPECT_NE(rows.dense.data(), dense->Values().data());
  EXPECT_TRUE(std::equal(rows.dense.begin(), rows.dense.end(), dense->Values().begin()));
}

}  // namespace
}  // namespace regatta::comm
