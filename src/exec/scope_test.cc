#include "exec/scope.h"

#include <gtest/gtest.h>

namespace regatta::exec {
namespace {

TEST(ScopeTest, LooksUpHereAndThenAround) {
  Scope outer;
  Value& w = outer.Var("w");
  Scope& inner = outer.NewChild();
  EXPECT_EQ(inner.Find("w"), &w);
  EXPECT_EQ(inner.FindHere("w"), nullptr);
  EXPECT_EQ(&inner.root(), &outer);
  Value& own = inner.Var("w");
  EXPECT_EQ(inner.Find("w"), &own);
  EXPECT_EQ(outer.Find("w"), &w);
  EXPECT_EQ(outer.Find("v"), nullptr);
}

TEST(ScopeTest, VarGivesTheValueThatIsThere) {
  Scope scope;
  Value& w = scope.Var("w");
  w.Set(at::ones({2}));
  EXPECT_EQ(&scope.Var("w"), &w);
  EXPECT_FALSE(w.empty());
  EXPECT_EQ(scope.Names(), std::vector<std::string>{"w"});
}

TEST(ScopeTest, TheStampChangesWithTheAddressesHereAndAround) {
  Scope outer;
  Scope& inner = outer.NewChild();
  uint64_t stamp = inner.stamp();
  const auto changed = [&] {
    const bool is = inner.stamp() != stamp;
    stamp = inner.stamp();
    return is;
  };
  EXPECT_FALSE(changed());
  outer.Var("w");
  EXPECT_TRUE(changed());
  outer.Var("w").Set(at::ones({1}));
  outer.Erase("no such");
  EXPECT_FALSE(changed());
  outer.Erase("w");
  EXPECT_TRUE(changed());
  inner.Var("x");
  EXPECT_TRUE(changed());
}

}  // namespace
}  // namespace regatta::exec
