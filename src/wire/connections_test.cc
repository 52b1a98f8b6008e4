#include "wire/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <string>

namespace regatta::wire {
namespace {

// Both ends of a connection over loopback.
struct Pair {
  Pair() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), size), 0);
    server = accept(listener, nullptr, nullptr);
    close(listener);
  }
  Pair(const Pair&) = delete;
  ~Pair() {
    close(client);
    close(server);
  }
  std::string peer() const { return "ipv4:" + PeerKeyOf(server); }
  // The server's end reads what it is sent.
  void Send(size_t bytes) const {
    std::string data(4096, 'x'), got(4096, '\0');
    for (size_t sent = 0; sent < bytes; sent += data.size()) {
      ASSERT_EQ(send(client, data.data(), data.size(), MSG_NOSIGNAL), static_cast<ssize_t>(data.size()));
      ASSERT_EQ(recv(server, got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));
    }
  }
  bool open() const { return !PeerKeyOf(server).empty(); }

  int client = -1, server = -1;
};

// A second after the last look.
class Watcher {
 public:
  explicit Watcher(Connections& connections) : connections_(connections) {}
  void EnforceLimits() { connections_.EnforceLimits(now_ += std::chrono::seconds(1)); }

 private:
  Connections& connections_;
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

TEST(Connections, APeerIsNamedAsGrpcNamesIt) {
  EXPECT_EQ(PeerKey("ipv4:127.0.0.1:4242"), "127.0.0.1:4242");
  EXPECT_EQ(PeerKey("ipv6:%5B::1%5D:4242"), "::1:4242");
  EXPECT_EQ(PeerKey("ipv6:[fe80::1%25eth0]:4242"), "fe80::1:4242");
}

TEST(Connections, CallsThatAreRefusedAgainAndAgainCloseTheirConnection) {
  Connections connections({.strikes = 3});
  Pair bad, good;
  ASSERT_TRUE(connections.Add(bad.server));
  ASSERT_TRUE(connections.Add(good.server));
  const auto connection = connections.Find(bad.peer());
  ASSERT_NE(connection, nullptr);
  for (int i = 0; i < 2; ++i) connections.Strike(*connection);
  EXPECT_TRUE(bad.open());
  connections.Strike(*connection);
  EXPECT_FALSE(bad.open());
  EXPECT_TRUE(good.open());
  EXPECT_EQ(connections.Find(bad.peer()), nullptr);
  connections.Strike(*connection);  // calls of it that were under way
  EXPECT_EQ(connections.size(), 1u);
}

TEST(Connections, AStrangerSendsSoManyBytesAndAWorkerMore) {
  Connections connections({.stranger_bytes = 16 << 10});
  Watcher watcher(connections);
  Pair stranger, worker, asks;
  for (const Pair* pair : {&stranger, &worker, &asks}) ASSERT_TRUE(connections.Add(pair->server));
  connections.Join(*connections.Find(worker.peer()));
  for (int i = 0; i < 10; ++i) connections.Find(asks.peer())->Served();
  for (const Pair* pair : {&stranger, &worker, &asks}) pair->Send(32 << 10);
  watcher.EnforceLimits();
  EXPECT_FALSE(stranger.open());
  EXPECT_TRUE(worker.open());
  EXPECT_TRUE(asks.open());
  EXPECT_EQ(connections.closed(), 1u);
}

TEST(Connections, ALargeRequestThatIsReadMayBeSent) {
  Connections connections({.stranger_bytes = 16 << 10, .request_bytes = 64 << 10});
  Watcher watcher(connections);
  Pair pair;
  ASSERT_TRUE(connections.Add(pair.server));
  const auto connection = connections.Find(pair.peer());
  connections.BeginRequest(*connection);
  pair.Send(32 << 10);
  watcher.EnforceLimits();
  EXPECT_TRUE(pair.open());
  connection->EndRequest();
  watcher.EnforceLimits();
  EXPECT_FALSE(pair.open());
}

TEST(Connections, StrangersTogetherSendSoManyBytes) {
  Connections connections({.stranger_bytes = 64 << 10, .strangers_bytes = 40 << 10});
  Watcher watcher(connections);
  Pair little, much;
  ASSERT_TRUE(connections.Add(little.server));
  ASSERT_TRUE(connections.Add(much.server));
  little.Send(16 << 10);
  much.Send(32 << 10);
  watcher.EnforceLimits();
  EXPECT_TRUE(little.open());
  EXPECT_FALSE(much.open());
}

// The memory of a process, as a test wants it.
struct Memory {
  std::function<uint64_t()> Tell() {
    return [this] { return bytes; };
  }
  uint64_t bytes = 0;
};

TEST(Connections, AWorkersConnectionThatIsNotServedSendsSoManyBytes) {
  Connections connections({.member_bytes = 16 << 10});
  Watcher watcher(connections);
  Pair idle, busy;
  for (const Pair* pair : {&idle, &busy}) {
    ASSERT_TRUE(connections.Add(pair->server));
    connections.Join(*connections.Find(pair->peer()));
  }
  watcher.EnforceLimits();
  idle.Send(32 << 10);
  busy.Send(32 << 10);
  connections.Find(busy.peer())->Received(32 << 10);
  watcher.EnforceLimits();
  EXPECT_FALSE(idle.open());
  EXPECT_TRUE(busy.open());
}

TEST(Connections, AWorkersConnectionsTogetherHoldSoMuchAndTheLargestIsClosed) {
  Connections connections({.worker_bytes = 64 << 10, .lane_bytes = 8 << 10});  // 80 KiB with two lanes
  Watcher watcher(connections);
  Pair small, large, other;
  for (const Pair* pair : {&small, &large, &other}) {
    ASSERT_TRUE(connections.Add(pair->server));
    const auto connection = connections.Find(pair->peer());
    connections.Join(*connection, pair == &other ? 1 : 0, 2);
    connections.BeginRead(*connection);
  }
  small.Send(36 << 10);
  large.Send(40 << 10);
  other.Send(60 << 10);
  watcher.EnforceLimits();
  EXPECT_EQ(connections.closed(), 0u);
  large.Send(8 << 10);
  watcher.EnforceLimits();
  EXPECT_TRUE(small.open());
  EXPECT_FALSE(large.open());
  EXPECT_TRUE(other.open()) << "another worker's";
}

TEST(Connections, MoreLanesHoldMore) {
  Connections connections({.worker_bytes = 64 << 10, .lane_bytes = 8 << 10});
  Watcher watcher(connections);
  Pair first, second;
  for (const Pair* pair : {&first, &second}) {
    ASSERT_TRUE(connections.Add(pair->server));
    connections.Join(*connections.Find(pair->peer()), 0, 8);
    pair->Send(60 << 10);
  }
  watcher.EnforceLimits();
  EXPECT_EQ(connections.closed(), 0u);
}

TEST(Connections, ThoseWithATokenThatHaveNotSaidWhoseTheyAreHoldSoMuchTogether) {
  Connections connections({.unnamed_bytes = 40 << 10});
  Watcher watcher(connections);
  Pair little, much;
  for (const Pair* pair : {&little, &much}) {
    ASSERT_TRUE(connections.Add(pair->server));
    connections.Join(*connections.Find(pair->peer()));
  }
  little.Send(16 << 10);
  much.Send(32 << 10);
  watcher.EnforceLimits();
  EXPECT_TRUE(little.open());
  EXPECT_FALSE(much.open());
}

TEST(Connections, WhatAWorkerSentBeforeItWasHeardIsNotHeld) {
  Connections connections({.unnamed_bytes = 16 << 10});
  Watcher watcher(connections);
  Pair pair;
  ASSERT_TRUE(connections.Add(pair.server));
  const auto connection = connections.Find(pair.peer());
  connections.BeginRead(*connection);  // Connect
  pair.Send(32 << 10);
  connections.EndRead(*connection);
  connections.Join(*connection);
  watcher.EnforceLimits();
  EXPECT_TRUE(pair.open());
}

// A lane that goes on for long, and one whose connection also has a call that does not end.
TEST(Connections, MessagesThatComeAreNotHeldAndThoseBesideThemAre) {
  Connections connections({.member_bytes = 6 << 20});
  Watcher watcher(connections);
  Pair lane, shared;
  for (const Pair* pair : {&lane, &shared}) {
    ASSERT_TRUE(connections.Add(pair->server));
    const auto connection = connections.Find(pair->peer());
    connections.Join(*connection, 0);
    connections.BeginRead(*connection);
    if (pair == &shared) connections.BeginRead(*connection);
  }
  for (int i = 0; i < 6; ++i) {
    lane.Send(2 << 20);
    connections.Find(lane.peer())->Received(2 << 20);
    shared.Send(1 << 20);
    connections.Find(shared.peer())->Received(100);
    watcher.EnforceLimits();
    EXPECT_EQ(connections.closed(), 0u) << i;
  }
  shared.Send(1 << 20);
  watcher.EnforceLimits();
  EXPECT_TRUE(lane.open());
  EXPECT_FALSE(shared.open());
}

TEST(Connections, OneThatReadsNothingHoldsNothing) {
  Connections connections({.member_bytes = 40 << 10});
  Watcher watcher(connections);
  Pair pair;
  ASSERT_TRUE(connections.Add(pair.server));
  const auto connection = connections.Find(pair.peer());
  connections.Join(*connection, 0);
  for (int i = 0; i < 3; ++i) {  // calls that are cancelled
    connections.BeginRead(*connection);
    pair.Send(32 << 10);
    watcher.EnforceLimits();
    connections.EndRead(*connection);
  }
  EXPECT_TRUE(pair.open());
}

TEST(Connections, WorkersAreLookedAtWhenTheMemoryGrows) {
  Memory memory;
  Connections connections({.member_bytes = 16 << 10}, memory.Tell());
  const auto start = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  Pair pair;
  ASSERT_TRUE(connections.Add(pair.server));
  connections.Join(*connections.Find(pair.peer()), 0);
  connections.EnforceLimits(start);
  pair.Send(32 << 10);
  connections.EnforceLimits(start + std::chrono::milliseconds(20));
  EXPECT_TRUE(pair.open()) << "nothing has grown";
  memory.bytes += 64 << 20;
  connections.EnforceLimits(start + std::chrono::milliseconds(40));
  EXPECT_FALSE(pair.open());
}

TEST(Connections, OneStrangerTooManyClosesTheOldest) {
  Connections connections({.strangers = 2});
  std::list<Pair> pairs(4);
  for (const Pair& pair : pairs) {
    ASSERT_TRUE(connections.Add(pair.server));
    if (&pair == &pairs.front()) connections.Join(*connections.Find(pair.peer()));
  }
  auto pair = pairs.begin();
  EXPECT_TRUE(pair->open()) << "a worker's";
  EXPECT_FALSE((++pair)->open());
  EXPECT_TRUE((++pair)->open());
  EXPECT_TRUE((++pair)->open());
}

TEST(Connections, OneThatIsGoneIsForgotten) {
  Connections connections;
  Watcher watcher(connections);
  {
    Pair pair;
    ASSERT_TRUE(connections.Add(pair.server));
  }
  Pair other;  // perhaps by the same descriptor
  watcher.EnforceLimits();
  EXPECT_EQ(connections.size(), 0u);
  EXPECT_TRUE(other.open());
}

TEST(Connections, AStrangerHasFewCallsAtOnceAndAWorkerMore) {
  Connections connections({.stranger_calls = 2});
  Pair stranger, worker;
  for (const Pair* pair : {&stranger, &worker}) ASSERT_TRUE(connections.Add(pair->server));
  const auto bad = connections.Find(stranger.peer()), good = connections.Find(worker.peer());
  connections.Join(*good);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(connections.BeginCall(*good)) << "it is not counted";
  for (int i = 0; i < 9; ++i) {  // one after the other
    EXPECT_TRUE(connections.BeginCall(*bad));
    connections.EndCall(*bad);
  }
  EXPECT_TRUE(connections.BeginCall(*bad));
  EXPECT_TRUE(connections.BeginCall(*bad));
  EXPECT_TRUE(stranger.open());
  EXPECT_TRUE(connections.BeginCall(*bad));
  EXPECT_FALSE(stranger.open());
  EXPECT_TRUE(worker.open());
}

TEST(Connections, StrangersTogetherHaveSoManyCallsAtOnce) {
  Connections connections({.strangers_calls = 4});
  Pair one, many, another;
  for (const Pair* pair : {&one, &many, &another}) ASSERT_TRUE(connections.Add(pair->server));
  const auto first = connections.Find(one.peer()), second = connections.Find(many.peer());
  connections.BeginCall(*first);
  for (int i = 0; i < 4; ++i) connections.BeginCall(*second);
  EXPECT_TRUE(one.open());
  EXPECT_FALSE(many.open()) << "it has most of them";
  // Its calls are not over yet, and do not count any more.
  for (int i = 0; i < 3; ++i) connections.BeginCall(*connections.Find(another.peer()));
  EXPECT_TRUE(one.open());
  EXPECT_TRUE(another.open());
}

TEST(Connections, AWorkerHasSoManyConnections) {
  Connections connections({.worker_connections = 1, .lane_connections = 1, .unnamed_connections = 2});
  std::list<Pair> pairs(5);  // two lanes and one more: three
  for (const Pair& pair : pairs) ASSERT_TRUE(connections.Add(pair.server));
  std::vector<std::shared_ptr<Connection>> mine;
  for (const Pair& pair : pairs) mine.push_back(connections.Find(pair.peer()));
  connections.BeginRead(*mine[0]);  // a lane, or a call
  for (int i = 0; i < 3; ++i) connections.Join(*mine[static_cast<size_t>(i)], 0, 2);
  connections.Join(*mine[3], 1, 2);
  for (const Pair& pair : pairs) EXPECT_TRUE(pair.open());
  connections.Join(*mine[4], 0, 2);
  const bool open[] = {true, false, true, true, true};
  auto expected = std::begin(open);
  for (const Pair& pair : pairs) EXPECT_EQ(pair.open(), *expected++);

  std::list<Pair> unnamed(3);
  for (const Pair& pair : unnamed) {
    ASSERT_TRUE(connections.Add(pair.server));
    connections.Join(*connections.Find(pair.peer()));
  }
  EXPECT_FALSE(unnamed.front().open());
  EXPECT_TRUE(unnamed.back().open());
}

TEST(Connections, RepliesThatAWorkerDoesNotReadAreBounded) {
  Connections connections({.reply_bytes = 100});
  Pair old, other, now;
  for (const Pair* pair : {&old, &other, &now}) ASSERT_TRUE(connections.Add(pair->server));
  const auto first = connections.Find(old.peer()), second = connections.Find(other.peer()),
             third = connections.Find(now.peer());
  connections.Join(*first, 0);
  connections.Join(*second, 1);
  connections.Join(*third, 0);
  EXPECT_TRUE(connections.BeginReply(*first, 150)) << "one is always allowed";
  EXPECT_FALSE(connections.BeginReply(*first, 1)) << "the peer has not read the one before";
  connections.EndReply(*first, 150);
  EXPECT_TRUE(connections.BeginReply(*first, 60));
  EXPECT_TRUE(connections.BeginReply(*second, 60)) << "another worker";
  EXPECT_TRUE(connections.BeginReply(*third, 60)) << "the worker asks again";
  EXPECT_FALSE(old.open());
  EXPECT_TRUE(other.open());
  EXPECT_TRUE(now.open());
}

TEST(Connections, FewDescriptorsLeaveRoomForWorkers) {
  const ConnectionLimits limits = ConnectionLimits::Within(60);
  EXPECT_EQ(limits.strangers, 15u);
  EXPECT_EQ(limits.unnamed_connections, 15u);
  EXPECT_EQ(ConnectionLimits::Within(1 << 20).strangers, ConnectionLimits().strangers);
}

TEST(Connections, FewLanesOfAConnectionAreGreetedAtOnce) {
  Connection connection;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(connection.MayGreet());
  EXPECT_FALSE(connection.MayGreet());
  connection.Greeted();
  EXPECT_TRUE(connection.MayGreet());
}

}  // namespace
}  // namespace regatta::wire
