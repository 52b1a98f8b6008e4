#include "cluster/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "cluster/testing/variables.h"

namespace regatta::cluster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables Without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

ClusterSpec Read(const Variables& variables) {
  const absl::StatusOr<ClusterSpec> spec = ReadEnvironment(From(variables));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : ClusterSpec{};
}

std::string ErrorOf(const Variables& variables) {
  const absl::StatusOr<ClusterSpec> spec = ReadEnvironment(From(variables));
  EXPECT_FALSE(spec.ok());
  return std::string(spec.status().message());
}

const Variables kFleet = {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.11:36000,127.0.0.12:36000"},
                          {"PADDLE_TRAINERS_NUM", "2"}};
const Variables kFleetServer =
    With(kFleet, {{"TRAINING_ROLE", "PSERVER"}, {"POD_IP", "127.0.0.12"}, {"PADDLE_PORT", "36000"}});
const Variables kFleetWorker = With(kFleet, {{"TRAINING_ROLE", "TRAINER"}, {"PADDLE_TRAINER_ID", "1"}});
const Variables kFluid = {
    {"PADDLE_PSERVER_PORT", "6174"}, {"PADDLE_PSERVER_IPS", "127.0.0.1"}, {"PADDLE_TRAINERS", "2"}};
const Variables kFluidServer =
    With(kFluid, {{"PADDLE_TRAINING_ROLE", "PSERVER"}, {"PADDLE_CURRENT_IP", "127.0.0.1"}, {"PADDLE_TRAINER_ID", "1"}});
const Variables kFluidWorker = With(kFluid, {{"PADDLE_TRAINING_ROLE", "TRAINER"}, {"PADDLE_TRAINER_ID", "1"}});
const Variables kV2 = {{"PADDLE_INIT_USE_GPU", "False"},
                       {"PADDLE_INIT_TRAINER_COUNT", "1"},
                       {"PADDLE_INIT_PORT", "7164"},
                       {"PADDLE_INIT_PORTS_NUM", "1"},
                       {"PADDLE_INIT_PORTS_NUM_FOR_SPARSE", "1"},
                       {"PADDLE_INIT_NUM_GRADIENT_SERVERS", "1"},
                       {"PADDLE_INIT_TRAINER_ID", "0"},
                       {"PADDLE_INIT_PSERVERS", "127.0.0.1"}};

TEST(Environment, NothingSetIsLocal) {
  EXPECT_EQ(Read({}).role, Role::kLocal);
  // What says no role changes nothing: exported lists, counts, leftovers of a batch system.
  for (const Variables& variables : {kFleet, Variables{{"PADDLE_TRAINERS", "2"}, {"PADDLE_PSERVER_PORT", "1"}},
                                     Variables{{"SLURM_PROCID", "0"}, {"PMI_RANK", "3"}, {"SLURM_NTASKS", "8"}},
                                     Variables{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}},
                                     Variables{{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "1"}},
                                     Variables{{"PADDLE_PSERVER_PORT_ARRAY", "(29011)"}, {"POD_IP", "10.0.0.1"}},
                                     Variables{{"PADDLE_TRAINER_ID", "1"}, {"PADDLE_PSERVER_IPS", ""}},
                                     Variables{{"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:1"}},
                                     Variables{{"PADDLE_INIT_PORT", "1"}, {"PADDLE_INIT_TRAINER_ID", "7"}},
                                     Variables{{"REGATTA_TOKEN_FILE", "t"}}}) {
    const ClusterSpec spec = Read(variables);
    EXPECT_EQ(spec.role, Role::kLocal);
    EXPECT_EQ(spec.family, Family::kNone);
    EXPECT_THAT(spec.servers, ElementsAre());
  }
}

TEST(Environment, FleetServerFindsItsPlaceByAddress) {
  const ClusterSpec spec = Read(kFleetServer);
  EXPECT_EQ(spec.role, Role::kServer);
  EXPECT_EQ(spec.family, Family::kFleet);
  EXPECT_THAT(spec.servers, ElementsAre("127.0.0.11:36000", "127.0.0.12:36000"));
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.endpoint, "127.0.0.12:36000");
  EXPECT_EQ(spec.workers, 2);
  EXPECT_EQ(spec.ports_num, 1);
  EXPECT_EQ(spec.ports_num_for_sparse, 0);
  EXPECT_THAT(PortsOfServer(spec, 0).dense, ElementsAre("127.0.0.11:36000"));
  EXPECT_THAT(PortsOfServer(spec, 0).sparse, ElementsAre("127.0.0.11:36000"));
  EXPECT_FALSE(spec.server_wait_timeout.has_value());
  // POD_IP defaults to 127.0.0.1; a trainer's id is ignored in a server, whatever it says.
  const ClusterSpec other = Read({{"TRAINING_ROLE", "PSERVER"},
                                  {"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:36011,127.0.0.1:36012"},
                                  {"PADDLE_TRAINERS_NUM", "1"},
                                  {"PADDLE_PORT", "36012"},
                                  {"PADDLE_TRAINER_ID", "99"}});
  EXPECT_EQ(other.index, 1);
  EXPECT_EQ(other.endpoint, "127.0.0.1:36012");
}

TEST(Environment, FleetWorker) {
  const ClusterSpec spec = Read(kFleetWorker);
  EXPECT_EQ(spec.role, Role::kWorker);
  EXPECT_EQ(spec.index, 1);
  EXPECT_EQ(spec.workers, 2);
  EXPECT_EQ(spec.endpoint, "");
  EXPECT_FALSE(spec.is_first_worker());
  EXPECT_TRUE(Read(With(kFleetWorker, {{"PADDLE_TRAINER_ID", "0"}})).is_first_worker());
}

TEST(Environment, TheIndexMayBeGivenSoThatTheListHoldsNames) {
  Variables variables = {{"TRAINING_ROLE", "PSERVER"},
                         {"PADDLE_PSERVERS_IP_PORT_LIST", "job-ps-0.job:36000,job-ps-1.job:36000"},
                         {"PADDLE_TRAINERS_NUM", "2"},
                         {"REGATTA_INSECURE", "1"}};
  for (const char* name : {"PADDLE_PSERVER_ID", "JOB_COMPLETION_INDEX"}) {
    const ClusterSpec spec = Read(With(variables, {{name, "1"}}));
    EXPECT_EQ(spec.index, 1);
    EXPECT_EQ(spec.endpoint, "job-ps-1.job:36000");
    EXPECT_EQ(Read(With(variables, {{name, "0"}, {"POD_IP", "10.1.2.3"}, {"PADDLE_PORT", "36000"}})).endpoint,
              "10.1.2.3:36000");
    EXPECT_THAT(ErrorOf(With(variables, {{name, "2"}})),
                AllOf(HasSubstr(absl::StrCat(name, "=2")), HasSubstr("0 to 1")));
    EXPECT_THAT(ErrorOf(With(variables, {{name, "-1"}})), HasSubstr(name));
    EXPECT_THAT(ErrorOf(With(variables, {{name, "1"}, {"PADDLE_PORT", "36001"}})),
                AllOf(HasSubstr("36001"), HasSubstr("job-ps-1.job:36000")));
  }
  EXPECT_EQ(Read(With(variables, {{"PADDLE_PSERVER_ID", "1"}, {"JOB_COMPLETION_INDEX", "0"}})).index, 1);
  // An address that is another server's contradicts the index.
  EXPECT_THAT(ErrorOf(With(kFleetServer, {{"PADDLE_PSERVER_ID", "0"}})),
              AllOf(HasSubstr("PADDLE_PSERVER_ID=0"), HasSubstr("127.0.0.12:36000")));
  // A pod of an Indexed Job of workers.
  EXPECT_EQ(Read(With(Without(kFleetWorker, "PADDLE_TRAINER_ID"), {{"JOB_COMPLETION_INDEX", "0"}})).index, 0);
}

TEST(Environment, FluidServerAndWorker) {
  const ClusterSpec server = Read(kFluidServer);
  EXPECT_EQ(server.role, Role::kServer);
  EXPECT_EQ(server.family, Family::kFluid);
  EXPECT_EQ(server.endpoint, "127.0.0.1:6174");
  EXPECT_EQ(server.index, 0);
  EXPECT_EQ(server.workers, 2);
  const ClusterSpec worker = Read(kFluidWorker);
  EXPECT_EQ(worker.role, Role::kWorker);
  EXPECT_EQ(worker.index, 1);
  EXPECT_THAT(worker.servers, ElementsAre("127.0.0.1:6174"));
  // The role defaults to TRAINER, the port to 6174.
  const ClusterSpec alone =
      Read({{"PADDLE_PSERVER_IPS", "127.0.0.1,127.0.0.2"}, {"PADDLE_TRAINERS", "1"}, {"PADDLE_TRAINER_ID", "0"}});
  EXPECT_EQ(alone.role, Role::kWorker);
  EXPECT_THAT(alone.servers, ElementsAre("127.0.0.1:6174", "127.0.0.2:6174"));
  // The server's own address under its other names; the typo in a worker is no matter.
  for (const char* name : {"POD_IP", "PADDLE_CURRENT_IPP"}) {
    EXPECT_EQ(Read(With(Without(kFluidServer, "PADDLE_CURRENT_IP"), {{name, "127.0.0.1"}})).endpoint, "127.0.0.1:6174");
    EXPECT_EQ(Read(With(kFluidWorker, {{name, "127.0.0.1"}})).index, 1);
  }
  EXPECT_THAT(ErrorOf(With(kFluidServer, {{"PADDLE_CURRENT_IP", "127.0.0.9"}})),
              AllOf(HasSubstr("127.0.0.9:6174"), HasSubstr("PADDLE_PSERVER_IPS=127.0.0.1")));
  EXPECT_THAT(ErrorOf(With(kFluidWorker, {{"PADDLE_PSERVER_IPS", "127.0.0.1:6174"}})), HasSubstr("PADDLE_PSERVER_IPS"));
}

TEST(Environment, V2WorkerAndItsDefaults) {
  for (const Variables& variables : {kV2, Variables{{"PADDLE_INIT_PSERVERS", "127.0.0.1"}}}) {
    const ClusterSpec spec = Read(variables);
    EXPECT_EQ(spec.role, Role::kWorker);
    EXPECT_EQ(spec.family, Family::kV2);
    EXPECT_EQ(spec.index, 0);
    EXPECT_EQ(spec.workers, 1);
    EXPECT_EQ(spec.ports_num, 1);
    EXPECT_EQ(spec.ports_num_for_sparse, 1);
    EXPECT_THAT(PortsOfServer(spec, 0).dense, ElementsAre("127.0.0.1:7164"));
    EXPECT_THAT(PortsOfServer(spec, 0).sparse, ElementsAre("127.0.0.1:7165"));
    EXPECT_THAT(spec.notes, ElementsAre());
  }
  const ClusterSpec wide = Read(With(kV2, {{"PADDLE_INIT_PORTS_NUM", "2"},
                                           {"PADDLE_INIT_PORTS_NUM_FOR_SPARSE", "3"},
                                           {"PADDLE_INIT_NUM_GRADIENT_SERVERS", "4"},
                                           {"PADDLE_INIT_TRAINER_ID", "3"},
                                           {"PADDLE_INIT_PSERVERS", "127.0.0.1,127.0.0.2"}}));
  EXPECT_EQ(wide.index, 3);
  EXPECT_THAT(PortsOfServer(wide, 1).dense, ElementsAre("127.0.0.2:7164", "127.0.0.2:7165"));
  EXPECT_THAT(PortsOfServer(wide, 1).sparse, ElementsAre("127.0.0.2:7166", "127.0.0.2:7167", "127.0.0.2:7168"));
}

TEST(Environment, TrainerCountIsThreadsAndSaysSoWhereItCouldBeMeantOtherwise) {
  const auto read = [](const char* trainer_count, const char* gradient_servers) {
    return Read(With(
        kV2, {{"PADDLE_INIT_TRAINER_COUNT", trainer_count}, {"PADDLE_INIT_NUM_GRADIENT_SERVERS", gradient_servers}}));
  };
  const ClusterSpec spec = read("3", "2");
  EXPECT_EQ(spec.threads, 3);
  EXPECT_EQ(spec.workers, 2);
  ASSERT_THAT(spec.notes, SizeIs(1));
  EXPECT_THAT(spec.notes[0],
              AllOf(HasSubstr("PADDLE_INIT_TRAINER_COUNT=3"), HasSubstr("PADDLE_INIT_NUM_GRADIENT_SERVERS=2")));
  EXPECT_THAT(read("1", "2").notes, ElementsAre());
  EXPECT_THAT(read("2", "2").notes, ElementsAre());
  EXPECT_THAT(Read(Without(With(kV2, {{"PADDLE_INIT_TRAINER_COUNT", "3"}}), "PADDLE_INIT_NUM_GRADIENT_SERVERS")).notes,
              ElementsAre());
  EXPECT_THAT(ErrorOf(With(kV2, {{"PADDLE_INIT_USE_GPU", "True"}})), HasSubstr("PADDLE_INIT_USE_GPU=False"));
}

TEST(Environment, RanksAreRecognisedAndRefusedAsNotAvailable) {
  const ClusterSpec rank =
      Read({{"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:1,127.0.0.1:2"}, {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:2"}});
  EXPECT_EQ(rank.role, Role::kCollectiveRank);
  EXPECT_EQ(rank.index, 1);
  EXPECT_EQ(rank.workers, 2);
  EXPECT_THAT(std::string(CheckAvailable(rank).message()), HasSubstr("not available yet"));
  EXPECT_THAT(ErrorOf({{"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:1"}, {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:2"}}),
              AllOf(HasSubstr("127.0.0.1:2"), HasSubstr("PADDLE_TRAINER_ENDPOINTS=127.0.0.1:1")));
  for (const Variables& variables :
       {Variables{{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "2"}},
        Variables{{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "3"}, {"SLURM_PROCID", "2"}},
        Variables{{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "3"}, {"PMIX_RANK", "2"}, {"SLURM_PROCID", "0"}}}) {
    const ClusterSpec spec = Read(variables);
    EXPECT_EQ(spec.role, Role::kMpiRank);
    EXPECT_EQ(spec.index, 2);
    EXPECT_EQ(spec.workers, 3);
    EXPECT_THAT(std::string(CheckAvailable(spec).message()),
                AllOf(HasSubstr("rank 2 of 3"), HasSubstr("not available yet")));
  }
  for (const Variables& variables : {Variables{}, kFleetServer, kFleetWorker, kFluidWorker, kV2})
    EXPECT_TRUE(CheckAvailable(Read(variables)).ok());
}

TEST(Environment, TheFirstMatchOfTheTableWins) {
  const Variables mpi = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"SLURM_PROCID", "3"}};
  EXPECT_EQ(Read(With(kFleetWorker, mpi)).index, 1);
  EXPECT_EQ(Read(With(kV2, mpi)).family, Family::kV2);
  // Paddle's own launcher sets the workers' endpoints beside TRAINING_ROLE.
  const Variables collective = {{"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:1,127.0.0.1:2"},
                                {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:2"}};
  EXPECT_EQ(Read(With(kFleetWorker, collective)).family, Family::kFleet);
  EXPECT_EQ(Read(With(collective, mpi)).family, Family::kCollective);
}

TEST(Environment, OneErrorListsEveryMissingName) {
  const struct {
    Variables variables;
    std::vector<std::string> missing;
  } kCases[] = {
      {{{"TRAINING_ROLE", "PSERVER"}}, {"PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "PADDLE_PORT"}},
      {{{"TRAINING_ROLE", "TRAINER"}}, {"PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID"}},
      {{{"TRAINING_ROLE", "TRAINER"}, {"PADDLE_TRAINERS_NUM", ""}, {"PADDLE_TRAINER_ID", " "}},
       {"PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID"}},
      {Without(kFleetServer, "PADDLE_PORT"), {"PADDLE_PORT"}},
      {Without(kFleetWorker, "PADDLE_TRAINER_ID"), {"PADDLE_TRAINER_ID"}},
      {{{"PADDLE_TRAINING_ROLE", "PSERVER"}}, {"PADDLE_PSERVER_IPS", "PADDLE_TRAINERS", "PADDLE_CURRENT_IP"}},
      {{{"PADDLE_TRAINING_ROLE", "TRAINER"}}, {"PADDLE_PSERVER_IPS", "PADDLE_TRAINERS", "PADDLE_TRAINER_ID"}},
      {{{"PADDLE_PSERVER_IPS", "127.0.0.1"}}, {"PADDLE_TRAINERS", "PADDLE_TRAINER_ID"}},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, {"OMPI_COMM_WORLD_RANK"}},
  };
  const std::vector<std::string> all = {"PADDLE_PSERVERS_IP_PORT_LIST",
                                        "PADDLE_TRAINERS_NUM",
                                        "PADDLE_PORT",
                                        "PADDLE_TRAINERS",
                                        "PADDLE_TRAINER_ID",
                                        "PADDLE_CURRENT_IP"};
  for (const auto& c : kCases) {
    const std::string error = ErrorOf(c.variables);
    const std::string list = error.substr(error.find("needs:"));
    for (const std::string& name : c.missing) EXPECT_THAT(list, HasSubstr(name)) << error;
    if (c.missing.size() > 1) continue;
    for (const std::string& name : all) EXPECT_EQ(list.find(name) != std::string::npos, name == c.missing[0]) << error;
  }
}

TEST(Environment, AWrongRoleNamesBothRightOnes) {
  for (const char* name : {"TRAINING_ROLE", "PADDLE_TRAINING_ROLE"}) {
    for (const char* role : {"BOSS", "pserver", "", "PSERVER,TRAINER", "WORKER"}) {
      EXPECT_THAT(ErrorOf(With(kFleet, {{name, role}})),
                  AllOf(HasSubstr(absl::StrCat(name, "=", role)), HasSubstr("PSERVER"), HasSubstr("TRAINER")));
    }
  }
  EXPECT_EQ(Read(With(kFleetWorker, {{"TRAINING_ROLE", " TRAINER "}})).role, Role::kWorker);
}

TEST(Environment, AnEndpointOutsideTheListNamesBoth) {
  EXPECT_THAT(ErrorOf(With(kFleetServer, {{"PADDLE_PORT", "36001"}})),
              AllOf(HasSubstr("127.0.0.12:36001"), HasSubstr("127.0.0.11:36000,127.0.0.12:36000")));
  EXPECT_THAT(ErrorOf(Without(kFleetServer, "POD_IP")),
              AllOf(HasSubstr("127.0.0.1:36000"), HasSubstr("POD_IP=127.0.0.1, the default")));
}

TEST(Environment, ValuesAreRangeCheckedAndNamed) {
  const struct {
    Variables base;
    const char* name;
    std::vector<const char*> bad;
  } kCases[] = {
      {kFleetServer, "PADDLE_PORT", {"0", "65536", "x", "36000.0", "-1", "99999999999999999999"}},
      {kFleetServer, "POD_IP", {"10.0.0", "a b", "127.0.0.12:36000"}},
      {kFleetWorker, "PADDLE_TRAINERS_NUM", {"0", "-2", "two", "65537", "2,3"}},
      {kFleetWorker, "PADDLE_TRAINER_ID", {"-1", "2", "x", "1e0"}},
      {kFleetWorker, "PADDLE_PSERVERS_IP_PORT_LIST", {",", "127.0.0.1", "127.0.0.1:1,127.0.0.1:1", "0.0.0.0:36000"}},
      {kFluidServer, "PADDLE_PSERVER_PORT", {"0", "65536", "x"}},
      {kFluidWorker, "PADDLE_PSERVER_IPS", {",", "127.0.0.1,127.0.0.1", "300.0.0.1"}},
      {kFluidWorker, "PADDLE_TRAINERS", {"0", "x"}},
      {kFluidWorker, "PADDLE_TRAINER_ID", {"2", "-1"}},
      {kV2, "PADDLE_INIT_PORT", {"0", "65535", "x"}},
      {kV2, "PADDLE_INIT_PORTS_NUM", {"0", "257", "x"}},
      {kV2, "PADDLE_INIT_PORTS_NUM_FOR_SPARSE", {"-1", "257"}},
      {kV2, "PADDLE_INIT_NUM_GRADIENT_SERVERS", {"0", "x"}},
      {kV2, "PADDLE_INIT_TRAINER_ID", {"1", "-1"}},
      {kV2, "PADDLE_INIT_TRAINER_COUNT", {"0", "x"}},
      {kV2, "PADDLE_INIT_USE_GPU", {"maybe"}},
      {kV2, "PADDLE_INIT_PSERVERS", {",", "127.0.0.1,127.0.0.1"}},
      {kFleetWorker, "REGATTA_SERVER_WAIT_TIMEOUT", {"0", "-1", "x", "inf", "nan", "1e9"}},
      {kFleetWorker, "REGATTA_INSECURE", {"maybe", "2"}},
      {kFleetWorker, "REGATTA_WORKERS_RETURN", {"maybe", "2"}},
  };
  for (const auto& c : kCases)
    for (const char* bad : c.bad) EXPECT_THAT(ErrorOf(With(c.base, {{c.name, bad}})), HasSubstr(c.name)) << bad;
  EXPECT_EQ(Read(With(kFleetWorker, {{"REGATTA_SERVER_WAIT_TIMEOUT", "7.5"}})).server_wait_timeout, 7.5);
}

TEST(Environment, FamiliesThatDisagreeAreRefusedNamingBoth) {
  const Variables agreeing = With(kFleetWorker, {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:6174"},
                                                 {"PADDLE_TRAINING_ROLE", "TRAINER"},
                                                 {"PADDLE_PSERVER_IPS", "127.0.0.1"},
                                                 {"PADDLE_PSERVER_PORT", "6174"},
                                                 {"PADDLE_TRAINERS", "2"},
                                                 {"PADDLE_INIT_PSERVERS", "127.0.0.1"},
                                                 {"PADDLE_INIT_PORT", "6174"},
                                                 {"PADDLE_INIT_NUM_GRADIENT_SERVERS", "2"},
                                                 {"PADDLE_INIT_TRAINER_ID", "1"}});
  EXPECT_EQ(Read(agreeing).family, Family::kFleet);
  // A port that only a default says is no disagreement.
  EXPECT_EQ(
      Read(Without(Without(With(agreeing, {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:1"}}), "PADDLE_PSERVER_PORT"),
                   "PADDLE_INIT_PORT"))
          .family,
      Family::kFleet);
  const struct {
    const char* name;
    const char* value;
    const char* other;
  } kCases[] = {
      {"PADDLE_TRAINING_ROLE", "PSERVER", "TRAINING_ROLE=TRAINER"},
      {"PADDLE_PSERVER_IPS", "127.0.0.2", "PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:6174"},
      {"PADDLE_PSERVER_IPS", "127.0.0.1,127.0.0.2", "PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:6174"},
      {"PADDLE_TRAINERS", "3", "PADDLE_TRAINERS_NUM=2"},
      {"PADDLE_INIT_PSERVERS", "127.0.0.2", "PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:6174"},
      {"PADDLE_INIT_NUM_GRADIENT_SERVERS", "3", "PADDLE_TRAINERS_NUM=2"},
      {"PADDLE_INIT_TRAINER_ID", "0", "PADDLE_TRAINER_ID=1"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ErrorOf(With(agreeing, {{c.name, c.value}})),
                AllOf(HasSubstr(absl::StrCat(c.name, "=", c.value)), HasSubstr(c.other), HasSubstr("disagree")));
  }
  EXPECT_THAT(ErrorOf(With(agreeing, {{"PADDLE_PSERVER_PORT", "1"}})),
              AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("127.0.0.1:6174")));
  EXPECT_THAT(ErrorOf(With(kFleetWorker, {{"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"},
                                          {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:2"}})),
              AllOf(HasSubstr("PADDLE_TRAINERS_NUM=2"), HasSubstr("PADDLE_TRAINER_ENDPOINTS=")));
  const Variables server = {{"TRAINING_ROLE", "PSERVER"},
                            {"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:6174"},
                            {"PADDLE_TRAINERS_NUM", "1"},
                            {"POD_IP", "127.0.0.1"},
                            {"PADDLE_PORT", "6174"},
                            {"PADDLE_TRAINING_ROLE", "PSERVER"},
                            {"PADDLE_PSERVER_IPS", "127.0.0.1"},
                            {"PADDLE_CURRENT_IP", "127.0.0.2"}};
  EXPECT_THAT(ErrorOf(server), AllOf(HasSubstr("POD_IP=127.0.0.1"), HasSubstr("PADDLE_CURRENT_IP=127.0.0.2")));
  EXPECT_EQ(Read(With(server, {{"PADDLE_CURRENT_IP", "127.0.0.1"}})).endpoint, "127.0.0.1:6174");
  // A variable of a family whose deciding variable is not set is no second family.
  EXPECT_EQ(
      Read(With(kFluidWorker, {{"PADDLE_TRAINERS_NUM", "9"}, {"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.9:9"}})).workers,
      2);
}

TEST(Environment, OtherMachinesNeedCredentialsOrATrustedNetwork) {
  const Variables far = With(kFleetWorker, {{"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:1,10.0.0.1:36000"}});
  EXPECT_THAT(ErrorOf(far), AllOf(HasSubstr("10.0.0.1"), HasSubstr("REGATTA_INSECURE=1"), HasSubstr("--insecure"),
                                  HasSubstr("regatta credentials init")));
  EXPECT_THAT(ErrorOf(With(far, {{"REGATTA_INSECURE", "0"}})), HasSubstr("10.0.0.1"));
  EXPECT_EQ(Read(With(far, {{"REGATTA_INSECURE", "1"}})).network, Network::kTrusted);
  EXPECT_TRUE(ReadEnvironment(From(far), Network::kTrusted).ok());
  EXPECT_EQ(Read(kFleetWorker).network, Network::kLoopbackOnly);
  for (const char* name : {"REGATTA_TOKEN_FILE", "REGATTA_TLS_CERT", "REGATTA_TLS_KEY", "REGATTA_TLS_CA"}) {
    EXPECT_THAT(ErrorOf(With(kFleetWorker, {{name, "f"}})),
                AllOf(HasSubstr("missing"),
                      HasSubstr(std::string(name) == "REGATTA_TLS_CA" ? "REGATTA_TLS_KEY" : "REGATTA_TLS_CA")));
  }
  // Listening on every address is for others too.
  EXPECT_THAT(ErrorOf({{"TRAINING_ROLE", "PSERVER"},
                       {"PADDLE_PSERVERS_IP_PORT_LIST", "127.0.0.1:1"},
                       {"PADDLE_TRAINERS_NUM", "1"},
                       {"PADDLE_PSERVER_ID", "0"},
                       {"POD_IP", "0.0.0.0"}}),
              HasSubstr("REGATTA_INSECURE=1"));
}

TEST(Environment, RoleVariablesHoldEveryNameThatSaysARole) {
  Variables all = With(With(kFleetServer, kFluidServer), With(kV2, kFleetWorker));
  all = With(all, {{"PADDLE_TRAINER_ENDPOINTS", "a:1"}, {"PADDLE_CURRENT_ENDPOINT", "a:1"}});
  for (const std::string_view name : RoleVariables()) all.erase(std::string(name));
  EXPECT_TRUE(all.empty());
}

TEST(Environment, ProxiesAreClearedForThisProcess) {
  for (const char* name : {"http_proxy", "https_proxy", "grpc_proxy", "HTTPS_PROXY"}) setenv(name, "http://x:9", 1);
  ClearProxyVariables();
  const Getenv process = ProcessEnvironment();
  for (const char* name : {"http_proxy", "https_proxy", "grpc_proxy", "HTTPS_PROXY"})
    EXPECT_EQ(process(name), std::nullopt) << name;
}

}  // namespace
}  // namespace regatta::cluster
