#include "client/control_channel.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "wire/transport.h"

namespace regatta::client {
namespace {

constexpr std::chrono::milliseconds kConnectWait(200), kCallRest(20);

}  // namespace

ControlChannel::ControlChannel(int server, const std::string& endpoint, const cluster::Credentials* credentials,
                               std::function<bool()> cancelled)
    : channel_{endpoint, wire::MakeChannel(endpoint, credentials)},
      name_(absl::StrCat("server ", server, " (", endpoint, ")")),
      stub_(ps::ParameterServer::NewStub(channel_.channel)),
      cancelled_(std::move(cancelled)),
      outage_log_(name_) {}

grpc::Status ControlChannel::CallWhileAway(std::chrono::duration<double> timeout,
                                           const std::function<grpc::Status()>& attempt) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const grpc::Status status = attempt();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE || !durable_ || cancelled_() || waited > timeout)
      return status;
    outage_log_.LogIfDue(waited, timeout);
    channel_.channel->WaitForConnected(std::chrono::system_clock::now() + kConnectWait);  // as in Lane::Reconnect
    std::this_thread::sleep_for(kCallRest);
  }
}

}  // namespace regatta::client
