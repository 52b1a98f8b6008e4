// The control verbs of one server: its channel, and calls that are repeated while a durable server is away.
// Thread-safety: all methods are concurrent but set_durable, which comes before the calls that it is about.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "client/await_servers.h"
#include "client/outage_log.h"
#include "wire/ps.grpc.pb.h"

namespace regatta::client {

class ControlChannel {
 public:
  // `cancelled` is asked while a call waits for its server; `credentials` may be null.
  ControlChannel(int server, const std::string& endpoint, const cluster::Credentials* credentials,
                 std::function<bool()> cancelled);

  const std::string& name() const { return name_; }  // what messages call the server
  const NamedChannel& channel() const { return channel_; }
  ps::ParameterServer::Stub& stub() { return *stub_; }
  OutageLog& outage_log() { return outage_log_; }  // for the lanes to the server, too
  // Whether the server may come back with all that it acknowledged. True before it has said so.
  bool durable() const { return durable_; }
  void set_durable(bool durable) { durable_ = durable; }

  // Repeats `attempt` while it gives UNAVAILABLE, the server is durable, and no more than `timeout` has passed. An
  // attempt sets its own deadline.
  grpc::Status CallWhileAway(std::chrono::duration<double> timeout, const std::function<grpc::Status()>& attempt);

 private:
  const NamedChannel channel_;
  const std::string name_;
  const std::unique_ptr<ps::ParameterServer::Stub> stub_;
  const std::function<bool()> cancelled_;
  OutageLog outage_log_;
  bool durable_ = true;
};

}  // namespace regatta::client
