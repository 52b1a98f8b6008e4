#include "comm/local.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

TEST(Local, AStepWithNaNChangesNoTable) {
  table::SparseTableConfig sparse_config;
  sparse_config.name = "t";
  sparse_config.dim = 1;
  sparse_config.rule.name = "sgd";
  const auto sparse = table::SparseTable::Create(sparse_config).value();
  table::DenseTableConfig dense_config;
  dense_config.parameters = {{"w", {1}, {}}};
  dense_config.rule.name = "sgd";
  const auto dense = table::DenseTable::Create(dense_config).value();
  client::LocalClient client({sparse.get()}, dense.get(), table::NanPolicy::kAbort);
  Local local(client, 1);
  const std::vector<base::Key> keys{7};
  const float good = 1, bad = std::nanf("");
  base::TableGrads table;
  table.keys = {0, keys, {}};
  table.grads = {&good, 1, 1};
  const base::DenseGrad block{0, {&bad, 1}};
  base::StepGrads step;
  step.samples = 1;
  step.tables = {&table, 1};
  step.dense = {&block, 1};
  EXPECT_EQ(local.Commit(step).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(sparse->rows(), 0u);
}

}  // namespace
}  // namespace regatta::comm
