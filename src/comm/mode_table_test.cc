#include "comm/mode_table.h"

#include <gtest/gtest.h>

#include "client/local_client.h"
#include "comm/async.h"
#include "comm/geo.h"
#include "comm/half_async.h"
#include "comm/sync.h"
#include "comm/testing/small_step.h"
#include "table/dense_table.h"
#include "table/sparse_table.h"

namespace regatta::comm {
namespace {

CommunicatorOptions AloneOptions() {
  CommunicatorOptions options;
  options.tables = SmallTables();
  options.agree = [](const std::string&, uint64_t value) { return value; };
  return options;
}

struct AloneTables {
  std::unique_ptr<table::SparseTable> sparse = table::SparseTable::Create(SmallTables().sparse[0]).value();
  std::unique_ptr<table::DenseTable> dense = table::DenseTable::Create(SmallTables().dense).value();
  client::LocalClient client{{sparse.get()}, dense.get(), table::NanPolicy::kAbort};
};

TEST(ModeTable, EveryNameMakesItsOwnCommunicator) {
  AloneTables tables;
  const auto make = [&](const char* name) {
    return MakeCommunicator(base::ModeNamed(name).value(), tables.client, AloneOptions()).value();
  };
  EXPECT_NE(dynamic_cast<Async*>(make("async").get()), nullptr);
  EXPECT_NE(dynamic_cast<Sync*>(make("sync").get()), nullptr);
  EXPECT_NE(dynamic_cast<HalfAsync*>(make("half_async").get()), nullptr);
  EXPECT_NE(dynamic_cast<Geo*>(make("geo").get()), nullptr);
}

// One worker with tables of its own, gradients that do not depend on values: every mode ends at the same model.
TEST(ModeTable, EveryModeTrainsOnTablesInTheProcess) {
  for (const base::ModeTraits& mode : base::kModes) {
    SCOPED_TRACE(mode.name);
    AloneTables tables;
    CommunicatorOptions options = AloneOptions();
    options.half_async_merge = 1;
    options.staleness = 0;
    const auto comm = MakeCommunicator(mode.mode, tables.client, options).value();
    ASSERT_EQ(comm->widths().size(), 1u);
    EXPECT_EQ(comm->widths()[0].pull, 1);
    EXPECT_EQ(comm->widths()[0].push, 1);
    ASSERT_TRUE(comm->BeginPass(SmallPass()).ok());
    for (uint64_t batch = 0; batch < 12; ++batch)
      ASSERT_TRUE(RunStep(*comm, {.grads = {{7, -1}, {8 + batch, -2}}, .dense = {-3, -4}, .samples = 2}, batch).ok());
    ASSERT_TRUE(comm->EndPass().ok());
    const base::GroupedKeys keys({7, 8, 19});
    std::vector<float> rows(3);
    ASSERT_TRUE(tables.sparse->Pull(keys.view(), base::StepKind::kInfer, {rows.data(), 1, 1}).ok());
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(rows[i], keys.keys()[i] == 7 ? 6 : 1, 1e-5);
    EXPECT_NEAR(tables.dense->Values()[0], 18, 1e-5);
    EXPECT_NEAR(tables.dense->Values()[1], 24, 1e-5);
  }
}

}  // namespace
}  // namespace regatta::comm
