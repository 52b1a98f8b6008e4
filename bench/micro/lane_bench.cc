// Lanes against the network's library: a pull over loopback against a bare gRPC stream of the same bytes (raw TCP
// beside it), and what dense parameters cost a server that eight light workers push to.
#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/method_handler.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <semaphore>
#include <string_view>
#include <thread>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "base/freed_memory.h"
#include "base/grouped_keys.h"
#include "base/random.h"
#include "bench/measure.h"
#include "bench/server_process.h"
#include "fleet/worker_node.h"
#include "wire/lane_method.h"
#include "wire/transport.h"

namespace regatta::bench {
namespace {

constexpr size_t kKeys = 13'000;
constexpr int kDim = 9;
constexpr uint64_t kRows = 1'000'000;
constexpr int kInFlight = 4;
constexpr int kLanes = 2;  // so that both ends can use two cores
constexpr size_t kRequestBytes = kKeys * sizeof(base::Key);
constexpr size_t kReplyBytes = kKeys * kDim * sizeof(float);

// Key i of the table: any 64-bit pattern, so that keys take eight bytes.
base::Key KeyAt(uint64_t i) { return base::Mix64(i ^ 0x5eed); }

table::ModelConfig Tables(int64_t dense) {
  table::ModelConfig config;
  table::SparseTableConfig sparse;
  sparse.name = "embedding";
  sparse.dim = kDim;
  sparse.rule.name = "std_adagrad";
  config.sparse.push_back(sparse);
  if (dense > 0) config.dense.parameters = {{"w", {dense}, {"uniform", -1, 1}}};
  config.dense.rule.name = "adam";
  return config;
}

// Distinct log-uniform ids, as the batches of CTR-DNN have them: 13,000 are the distinct ids of 1000 samples.
std::vector<base::GroupedKeys> Batches(int count, uint64_t seed, size_t size = kKeys) {
  base::Rng rng(seed);
  std::vector<base::GroupedKeys> batches;
  for (int b = 0; b < count; ++b) {
    absl::flat_hash_set<base::Key> keys;
    while (keys.size() < size) keys.insert(KeyAt(static_cast<uint64_t>(std::pow(kRows, rng.Uniform()))));
    batches.emplace_back(std::vector<base::Key>(keys.begin(), keys.end()));
  }
  return batches;
}

fleet::WorkerOptions WorkerAt(const std::string& endpoint, int rank, int workers, int64_t dense) {
  fleet::WorkerOptions options;
  options.servers = {{{endpoint}, {}}};
  options.rank = rank;
  options.workers = workers;
  options.mode = base::Mode::kAsync;
  options.tables = Tables(dense);
  return options;
}

// ---- One pull ----

// Pulls through a worker's own lanes, four under way.
class Pulls {
 public:
  Pulls() : batches_(Batches(16, 1)), server_(1) {
    client::ClientOptions options;
    options.servers = {{{server_.endpoint()}, {}}};
    options.worker.set_incarnation(1);
    options.job.set_mode("async");
    options.job.set_workers(1);
    options.job.set_sparse_lanes(kLanes);
    options.job.set_nan_policy("skip");
    options.job.set_on_worker_loss("fail");
    options.tables = Tables(0);
    auto connection = client::Connection::Open(options);
    CHECK(connection.ok()) << connection.status();
    connection_ = *std::move(connection);
    Fill();
    for (int i = 0; i < kInFlight; ++i) {
      rows_[i].resize(kKeys * kDim);
      views_[i] = {rows_[i].data(), kDim, kDim};
    }
  }

  double Run(int count) {
    return count / Seconds([&] {
             for (int i = 0; i < count; ++i) {
               const int slot = i % kInFlight;
               CHECK_EQ(calls_[slot].Wait(), absl::OkStatus());
               keys_[slot] = batches_[static_cast<size_t>(i) % batches_.size()].view();
               connection_->data().Pull({}, {&keys_[slot], 1}, {&views_[slot], 1}, calls_[slot]);
             }
             for (client::Call& call : calls_) CHECK_EQ(call.Wait(), absl::OkStatus());
           });
  }
  uint64_t bytes() const { return traffic().bytes_in.value() + traffic().bytes_out.value(); }
  const ServerProcess& server() const { return server_; }

 private:
  const client::LaneTraffic& traffic() const { return connection_->data().traffic(0); }
  void Fill() {
    const std::vector<float> ones(kKeys * kDim, 1.0f);
    for (uint64_t begin = 0; begin < kRows; begin += kKeys) {
      std::vector<base::Key> keys;
      for (uint64_t i = begin; i < std::min(kRows, begin + kKeys); ++i) keys.push_back(KeyAt(i));
      const base::GroupedKeys grouped(std::move(keys));
      base::TableGrads table;
      table.keys = grouped.view();
      table.grads = {ones.data(), kDim, kDim};
      base::StepGrads grads;
      grads.samples = 1;
      grads.tables = {&table, 1};
      client::Call call;
      connection_->data().Push(grads, call);
      CHECK_EQ(call.Wait(), absl::OkStatus());
    }
  }

  const std::vector<base::GroupedKeys> batches_;
  ServerProcess server_;
  std::unique_ptr<client::Connection> connection_;
  std::vector<float> rows_[kInFlight];
  base::RowsView<float> views_[kInFlight];
  base::TableKeys keys_[kInFlight];
  client::Call calls_[kInFlight];
};

grpc::ByteBuffer Bytes(size_t count) {
  const grpc::Slice slice(std::string(count, 'x'));
  return grpc::ByteBuffer(&slice, 1);
}

// A stream that answers requests of one size with replies of another and looks at neither, by gRPC's synchronous
// server.
class BareService final : public ps::ParameterServer::Service {
 public:
  using Stream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  BareService() {
    MarkMethodStreamed(1, new grpc::internal::BidiStreamingHandler<BareService, grpc::ByteBuffer, grpc::ByteBuffer>(
                              [](BareService*, grpc::ServerContext*, Stream* stream) -> grpc::Status {
                                const grpc::ByteBuffer reply = Bytes(kReplyBytes);
                                grpc::ByteBuffer request;
                                while (stream->Read(&request)) stream->Write(reply);
                                return grpc::Status::OK;
                              },
                              this));
  }
};

// The process that a BareStream starts; ends with it.
int ServeBare(const std::string& port) {
  BareService service;
  grpc::ServerBuilder builder;
  wire::ConfigureServer(builder);
  builder.AddListeningPort("127.0.0.1:" + port, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  CHECK(server != nullptr);
  server->Wait();
  return 0;
}

class BareStream {
 public:
  BareStream()
      : server_(ServerProcess::Here().string(), [](int port) {
          return std::vector<std::string>{"serve-bare", std::to_string(port)};
        }) {
    const auto channel =
        grpc::CreateCustomChannel(server_.endpoint(), grpc::InsecureChannelCredentials(), wire::ClientArguments());
    CHECK(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
    stream_ = wire::OpenLane(channel, &context_);
  }
  ~BareStream() {
    stream_->WritesDone();
    stream_->Finish();
  }

  double Run(int count) {
    return count / Seconds([&] {
             std::counting_semaphore<kInFlight> room(kInFlight);
             std::thread reader([&] {
               grpc::ByteBuffer reply;
               for (int i = 0; i < count; ++i) {
                 CHECK(stream_->Read(&reply));
                 CHECK_EQ(reply.Length(), kReplyBytes);
                 room.release();
               }
             });
             for (int i = 0; i < count; ++i) {
               room.acquire();
               CHECK(stream_->Write(request_));
             }
             reader.join();
           });
  }
  const ServerProcess& server() const { return server_; }

 private:
  ServerProcess server_;
  const grpc::ByteBuffer request_ = Bytes(kRequestBytes);
  grpc::ClientContext context_;
  std::unique_ptr<wire::LaneCall> stream_;
};

// The same bytes over a socket.
class RawTcp {
 public:
  RawTcp() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    CHECK_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(client_, reinterpret_cast<sockaddr*>(&address), size), 0);
    server_ = accept(listener, nullptr, nullptr);
    CHECK_GE(server_, 0);
    close(listener);
    for (const int end : {client_, server_}) {
      const int on = 1;
      setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    answering_ = std::thread([this] {
      std::vector<char> request(kRequestBytes), reply(kReplyBytes, 'x');
      while (Read(server_, request)) Write(server_, reply);
    });
  }
  ~RawTcp() {
    shutdown(client_, SHUT_WR);
    answering_.join();
    close(client_);
    close(server_);
  }

  double Run(int count) {
    return count / Seconds([&] {
             std::counting_semaphore<kInFlight> room(kInFlight);
             std::thread reader([&] {
               std::vector<char> reply(kReplyBytes);
               for (int i = 0; i < count; ++i) {
                 CHECK(Read(client_, reply));
                 room.release();
               }
             });
             const std::vector<char> request(kRequestBytes, 'x');
             for (int i = 0; i < count; ++i) {
               room.acquire();
               Write(client_, request);
             }
             reader.join();
           });
  }

 private:
  static bool Read(int from, std::vector<char>& into) {
    for (size_t at = 0; at < into.size();) {
      const ssize_t got = recv(from, into.data() + at, into.size() - at, 0);
      if (got <= 0) return false;
      at += static_cast<size_t>(got);
    }
    return true;
  }
  static void Write(int to, const std::vector<char>& what) {
    for (size_t at = 0; at < what.size();) {
      const ssize_t put = send(to, what.data() + at, what.size() - at, MSG_NOSIGNAL);
      CHECK_GT(put, 0);
      at += static_cast<size_t>(put);
    }
  }

  int client_ = -1, server_ = -1;
  std::thread answering_;
};

// Processor time of both ends, which other processes on the machine disturb less than pulls a second.
class Processors {
 public:
  // What run() gives.
  template <typename Fn>
  double Count(const ServerProcess& server, const Fn& run) {
    const double served = server.CpuSeconds(), here = Here();
    const double result = run();
    served_ += server.CpuSeconds() - served;
    here_ += Here() - here;
    return result;
  }
  void Print(const char* what, int pulls) const {
    std::printf("%s: %.0f microseconds of the client's processor, %.0f of the server's\n", what, 1e6 * here_ / pulls,
                1e6 * served_ / pulls);
  }

 private:
  static double Here() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  double here_ = 0, served_ = 0;
};

bool PullRow(int rounds) {
  constexpr int kPulls = 300;
  Pulls pulls;
  BareStream bare;
  RawTcp tcp;
  pulls.Run(kPulls);
  const double bytes = static_cast<double>(pulls.bytes());
  bare.Run(kPulls);
  tcp.Run(kPulls);
  std::vector<double> sockets;
  Processors pulling, streaming;
  const Row row = Compare(
      "pull of 13,000 rows of 36 bytes over loopback / a bare gRPC stream", "pulls/s", 0.7, rounds,
      [&] { return pulling.Count(pulls.server(), [&] { return pulls.Run(kPulls); }); },
      [&] {
        sockets.push_back(tcp.Run(kPulls));
        return streaming.Count(bare.server(), [&] { return bare.Run(kPulls); });
      });
  pulling.Print("a pull", kPulls * rounds);
  streaming.Print("a bare gRPC stream's", kPulls * rounds);
  constexpr double kGiga = (kRequestBytes + kReplyBytes) / 1e9;
  std::printf("pull: %.2f GB/s; a bare gRPC stream %.2f, raw TCP %.2f; %.0f bytes a pull, %zu of them keys and rows\n",
              row.thing * kGiga, row.bound * kGiga, Median(sockets) * kGiga,
              (static_cast<double>(pulls.bytes()) - bytes) / (kPulls * rounds), kRequestBytes + kReplyBytes);
  return Print(row);
}

// ---- One server, workers that compute nothing ----

struct Load {
  int workers = 8;
  size_t keys = kKeys;
  int64_t dense = 0;
  int steps = 60;  // of each worker
};

struct Served {
  double per_core = 0;  // steps that a second of the server's processor serves: a pull and a push each
  double per_second = 0;
};

Served LightWorkers(const Load& load) {
  ServerProcess server(load.workers);
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  for (int rank = 0; rank < load.workers; ++rank) {
    threads.emplace_back([&, rank] {
      auto worker = fleet::WorkerNode::Start(WorkerAt(server.endpoint(), rank, load.workers, load.dense));
      CHECK(worker.ok()) << worker.status();
      auto comm = (*worker)->StartCommunicator(0);
      CHECK(comm.ok()) << comm.status();
      const std::vector<base::GroupedKeys> batches = Batches(4, static_cast<uint64_t>(rank) + 1, load.keys);
      const std::vector<float> sparse_grads(load.keys * kDim, 0.01f);
      const std::vector<float> dense_grads(static_cast<size_t>(load.dense), 0.01f);
      CHECK_EQ((*comm)->BeginPass({}), absl::OkStatus());
      const auto step = [&](uint64_t k) {
        const base::TableKeys keys = batches[k % batches.size()].view();
        base::StepRows rows;
        CHECK_EQ((*comm)->Pull({.step = k, .tables = {&keys, 1}}, &rows), absl::OkStatus());
        base::TableGrads table;
        table.keys = keys;
        table.grads = {sparse_grads.data(), kDim, kDim};
        const base::DenseGrad piece{0, dense_grads};
        base::StepGrads grads;
        grads.step = grads.batch = k;
        grads.samples = 1000;
        grads.tables = {&table, 1};
        if (load.dense > 0) grads.dense = {&piece, 1};
        CHECK_EQ((*comm)->Commit(grads), absl::OkStatus());
      };
      uint64_t k = 0;
      for (; k < batches.size(); ++k) step(k);  // the rows are there
      ++ready;
      go.wait(false);
      for (const uint64_t end = k + static_cast<uint64_t>(load.steps); k < end; ++k) step(k);
      CHECK_EQ((*comm)->EndPass(), absl::OkStatus());
      CHECK_EQ((*worker)->Barrier("measured"), absl::OkStatus());
      (*worker)->Stop(absl::OkStatus());
    });
  }
  while (ready < load.workers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double cpu = server.CpuSeconds();
  const double seconds = Seconds([&] {
    go = true;
    go.notify_all();
    for (std::thread& thread : threads) thread.join();
  });
  const double steps = static_cast<double>(load.workers) * load.steps;
  return {steps / (server.CpuSeconds() - cpu), steps / seconds};
}

constexpr int64_t kCtrDnnDense = 432'000;

bool LightWorkersRow(int rounds) {
  std::vector<double> with, without;
  const auto measure = [](int64_t dense, std::vector<double>& speeds) {
    const Served served = LightWorkers({.dense = dense});
    speeds.push_back(served.per_second);
    return served.per_core;
  };
  const Row row = Compare(
      "one server, 8 light workers: pushes a core-second, dense on / off", "pushes/s", 0.6, rounds,
      [&] { return measure(kCtrDnnDense, with); }, [&] { return measure(0, without); });
  std::printf("8 light workers and their server on this machine: %.0f pushes/s with dense parameters, %.0f without\n",
              Median(with), Median(without));
  return Print(row);
}

// What docs/scale.md is fitted to: a server's processor time a step of one worker.
void Costs(int rounds) {
  for (const auto& [keys, dense, steps] : {std::tuple{size_t{100}, int64_t{0}, 2000},
                                           {size_t{3250}, int64_t{0}, 400},
                                           {kKeys, int64_t{0}, 120},
                                           {kKeys * 4, int64_t{0}, 40},
                                           {kKeys, kCtrDnnDense, 120}}) {
    std::vector<double> costs;
    for (int i = 0; i < rounds; ++i)
      costs.push_back(1e6 / LightWorkers({.workers = 2, .keys = keys, .dense = dense, .steps = steps}).per_core);
    std::printf("COST\t%zu keys\t%lld dense parameters\t%.0f microseconds of the server a step\n", keys,
                static_cast<long long>(dense), Median(costs));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace regatta::bench

// lane_bench [--quick] [pull | workers | costs]: one part of it, for a profile.
int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "serve-bare") return regatta::bench::ServeBare(argv[2]);
  bool quick = false;
  std::string_view part;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--quick") {
      quick = true;
    } else {
      part = argv[i];
    }
  }
  const auto wanted = [part](std::string_view name) { return part.empty() || part == name; };
  regatta::base::KeepFreedMemory();
  FLAGS_minloglevel = 1;
  google::InitGoogleLogging(argv[0]);
  bool ok = true;
  if (wanted("pull")) ok &= regatta::bench::PullRow(quick ? 5 : 15);
  if (wanted("workers")) ok &= regatta::bench::LightWorkersRow(quick ? 3 : 7);
  if (wanted("costs")) regatta::bench::Costs(quick ? 1 : 5);
  return ok ? 0 : 1;
}
