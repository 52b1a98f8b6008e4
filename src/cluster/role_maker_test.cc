#include "cluster/role_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RoleMaker, ExplicitRolesAreTakenAsSaid) {
  const auto server = MakeUserDefinedRole(
      {.role = Role::kServer, .current_id = 1, .worker_num = 3, .server_endpoints = {"127.0.0.1:1", "127.0.0.1:2"}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->role, Role::kServer);
  EXPECT_EQ(server->family, Family::kExplicit);
  EXPECT_EQ(server->index, 1);
  EXPECT_EQ(server->workers, 3);
  EXPECT_EQ(server->endpoint, "127.0.0.1:2");
  EXPECT_THAT(server->servers, ElementsAre("127.0.0.1:1", "127.0.0.1:2"));
  const auto worker = MakeUserDefinedRole({.current_id = 2, .worker_num = 3, .server_endpoints = {"127.0.0.1:1"}});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->index, 2);
  EXPECT_EQ(worker->endpoint, "");
}

TEST(RoleMaker, RangesAndDuplicatesAreRefusedByName) {
  const UserDefinedRole good = {.worker_num = 2, .server_endpoints = {"127.0.0.1:1", "127.0.0.1:2"}};
  const auto error = [&good](auto change) {
    UserDefinedRole role = good;
    change(role);
    return std::string(MakeUserDefinedRole(role).status().message());
  };
  EXPECT_TRUE(MakeUserDefinedRole(good).ok());
  EXPECT_THAT(error([](UserDefinedRole& r) { r.current_id = 2; }), HasSubstr("current_id: 2"));
  EXPECT_THAT(error([](UserDefinedRole& r) { r.current_id = -1; }), HasSubstr("current_id"));
  EXPECT_THAT(error([](UserDefinedRole& r) {
                r.role = Role::kServer;
                r.current_id = 2;
              }),
              HasSubstr("2 servers"));
  EXPECT_THAT(error([](UserDefinedRole& r) { r.worker_num = 0; }), HasSubstr("worker_num"));
  EXPECT_THAT(error([](UserDefinedRole& r) { r.server_endpoints.clear(); }), HasSubstr("server_endpoints"));
  EXPECT_THAT(error([](UserDefinedRole& r) { r.server_endpoints[1] = "127.0.0.1:1"; }), HasSubstr("twice"));
  EXPECT_THAT(error([](UserDefinedRole& r) { r.server_endpoints[1] = "127.0.0.1"; }), HasSubstr("server_endpoints"));
  EXPECT_THAT(error([](UserDefinedRole& r) { r.server_endpoints[1] = "10.0.0.1:1"; }), HasSubstr("--insecure"));
  EXPECT_THAT(error([](UserDefinedRole& r) { r.role = Role::kLocal; }), HasSubstr("role"));
}

}  // namespace
}  // namespace regatta::cluster
