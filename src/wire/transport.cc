#include "wire/transport.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "wire/frame.h"
#include "wire/grpc_locks.h"

namespace regatta::wire {
namespace {

constexpr int kWindowBytes = 8 << 20;
constexpr int kReadChunkBytes = 256 << 10;
constexpr int kMaxHttp2Frame = (1 << 24) - 1;
constexpr int kKeepaliveMillis = 10'000;
constexpr int kConnectMillis = 5'000;  // handshakes over a slow network take a few round trips
// Of a server, for peers that it does not know yet.
constexpr int kHandshakeMillis = 10'000;  // TLS and HTTP/2 have begun by then
constexpr int kIdleMillis = 60'000;       // without a call: a worker's heartbeat and its lanes never are
constexpr int kStreamsAConnection = 64;   // a worker has a lane, or some control verbs, on each

// For either end: `set` takes a name and a number.
template <typename Set>
void SetBoth(const Set& set) {
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kMaxFrameBytes));
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, static_cast<int>(kMaxFrameBytes));
  // A limit of a message's size is one of what it is decompressed to, which is made first: nothing is compressed.
  set(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  set(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 1);  // without it a connection's window stays at 64 KiB, whatever its streams have
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxHttp2Frame);
  set(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadChunkBytes);
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMillis);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

// Puts the token on every call. gRPC calls and destroys it in threads of its own. It orders that by counts that TSan,
// to which gRPC's code is dark, cannot see; `made_` is the same order for TSan.
class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(const std::string& token) : value_(absl::StrCat(kTokenPrefix, token)) {
    made_.store(true, std::memory_order_release);
  }
  ~TokenPlugin() override { made_.load(std::memory_order_acquire); }
  bool IsBlocking() const override { return false; }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace(kTokenKey, value_);
    return grpc::Status::OK;
  }

 private:
  const std::string value_;
  std::atomic<bool> made_{false};
};

}  // namespace

grpc::ChannelArguments ClientArguments() {
  LockWithoutDeadlockSearch();
  grpc::ChannelArguments arguments;
  SetBoth([&](const char* name, int value) { arguments.SetInt(name, value); });
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   kConnectMillis);  // how long an attempt may take, whatever its name
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return arguments;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& endpoint, const cluster::Credentials* credentials,
                                           const grpc::ChannelArguments& arguments) {
  if (credentials == nullptr) return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = credentials->ca;
  tls.pem_private_key = credentials->key;
  tls.pem_cert_chain = credentials->cert;
  return grpc::CreateCustomChannel(
      endpoint,
      grpc::CompositeChannelCredentials(
          grpc::SslCredentials(tls),
          grpc::MetadataCredentialsFromPlugin(std::make_unique<TokenPlugin>(credentials->own_token()))),
      arguments);
}

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const cluster::Credentials* credentials) {
  if (credentials == nullptr) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = credentials->ca;
  tls.pem_key_cert_pairs.push_back({credentials->key, credentials->cert});
  return grpc::SslServerCredentials(tls);
}

void ConfigureServer(grpc::ServerBuilder& builder) {
  LockWithoutDeadlockSearch();
  SetBoth([&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxFrameBytes));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMillis / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMillis);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsAConnection);
}

// The codes are the same numbers.
absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), base::Printable(status.error_message()));
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), std::string(status.message()));
}

}  // namespace regatta::wire
