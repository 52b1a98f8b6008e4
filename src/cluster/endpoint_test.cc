#include "cluster/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Endpoint, ReadsAddressesNamesAndBrackets) {
  const struct {
    const char* text;
    const char* printed;
  } kCases[] = {
      {"127.0.0.1:36000", "127.0.0.1:36000"},       {" 10.89.176.11:36000 ", "10.89.176.11:36000"},
      {"PS-0.Job_1.svc:1", "ps-0.job_1.svc:1"},     {"[::1]:65535", "[::1]:65535"},
      {"[2001:DB8:0:0::1]:80", "[2001:db8::1]:80"},
  };
  for (const auto& c : kCases) {
    const auto endpoint = ParseEndpoint(c.text);
    ASSERT_TRUE(endpoint.ok()) << c.text << ": " << endpoint.status();
    EXPECT_EQ(endpoint->ToString(), c.printed);
    EXPECT_EQ(ParseEndpoint(endpoint->ToString()).value(), *endpoint);
  }
}

TEST(Endpoint, RefusesWhatIsNoEndpointAndQuotesIt) {
  for (const char* text : {"",
                           "127.0.0.1",
                           ":36000",
                           "127.0.0.1:",
                           "127.0.0.1:0",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "127.0.0.1:36000x",
                           "127.0.0.1:3 6",
                           "127.0.0.256:1",
                           "127.0.1:1",
                           "::1:36000",
                           "[::1]",
                           "[::1",
                           "[::g]:1",
                           "a b:1",
                           "a..b:1",
                           "-a:1",
                           "a_:x",
                           "http://a:1",
                           "a,b:1",
                           "]:1",
                           "[]:1"}) {
    const auto endpoint = ParseEndpoint(text);
    EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(ParseEndpoint("10.0.0.1:99999").status().message()), HasSubstr("'10.0.0.1:99999'"));
  EXPECT_FALSE(ParseHost(std::string(300, 'a')).ok());
}

TEST(Endpoint, ListsAreOrderedAndWithoutDuplicates) {
  const auto list = ParseEndpoints("b:2, a:1,127.0.0.1:3");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(ToStrings(*list), ElementsAre("b:2", "a:1", "127.0.0.1:3"));
  EXPECT_EQ(JoinEndpoints(*list), "b:2,a:1,127.0.0.1:3");
  for (const char* text : {"", ",", "a:1,", ",a:1", "a:1,,b:2", "a:1,b", "a:1,A:1", "0.0.0.0:1", "[::]:1"})
    EXPECT_FALSE(ParseEndpoints(text).ok()) << text;
  EXPECT_THAT(std::string(ParseEndpoints("a:1,b:2,a:1").status().message()), HasSubstr("a:1 is twice in a:1,b:2,a:1"));
  EXPECT_THAT(ToStrings(ParseHosts("127.0.0.1,::1", 6174).value()), ElementsAre("127.0.0.1:6174", "[::1]:6174"));
  EXPECT_FALSE(ParseHosts("10.0.0.1:6174", 6174).ok());
}

TEST(Endpoint, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.255.0.9", "::1", "localhost"}) EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : {"128.0.0.1", "10.0.0.1", "::2", "0.0.0.0", "example", "127.0.0.1.example"})
    EXPECT_FALSE(IsLoopback(host)) << host;
}

}  // namespace
}  // namespace regatta::cluster
