// Any bytes as control calls of a server, with a job and without one: answered, never believed. An input is a byte that
// draws the server, then calls: a byte for the verb, two for the length, the request.
#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/ps_service.h"
#include "server/testing/golden_job.h"
#include "table/dense_table.h"

namespace {

using namespace regatta;

constexpr int64_t kMostDense = 1 << 20;  // a job may ask for more, and worker 0 may bring one that does
constexpr double kWait = 1e-3;           // seconds

// With a job of two tables and two lanes, and its workers here.
std::unique_ptr<server::PsService> NewService(bool with_job) {
  auto service = std::make_unique<server::PsService>(server::ServiceOptions(), nullptr);
  for (uint32_t rank = 0; with_job && rank < 2; ++rank) {
    ps::ConnectRequest request = server::GoldenRequest(base::Mode::kAsync);
    request.mutable_job()->set_on_worker_loss("shrink");
    request.mutable_job()->set_ack("memory");
    request.mutable_worker()->set_rank(rank);
    request.mutable_worker()->set_incarnation(7 + rank);
    grpc::ServerContext context;
    ps::ConnectReply reply;
    CHECK(service->Connect(&context, &request, &reply).ok());
  }
  return service;
}

bool IsSmall(const ps::ConnectRequest& request) {
  const auto spec = server::ParseJobSpec(request.job());
  if (!spec.ok()) return true;
  const auto dense = table::DenseTable::SizeOf(spec->tables.dense);
  return spec->tables.sparse.size() <= 16 && dense.ok() && *dense <= kMostDense && spec->workers <= 64;
}

template <typename Request, typename Reply>
void Call(server::PsService& service, grpc::Status (server::PsService::*verb)(grpc::ServerContext*, Request*, Reply*),
          const uint8_t* data, size_t size) {
  std::remove_const_t<Request> request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return;
  if constexpr (std::is_same_v<Request, const ps::ConnectRequest>) {
    if (!IsSmall(request)) return;
  }
  if constexpr (std::is_same_v<Request, ps::GatherRequest>) {
    if (!(request.timeout() > 0 && request.timeout() < kWait)) request.set_timeout(kWait);
  }
  grpc::ServerContext context;
  Reply reply;
  (service.*verb)(&context, &request, &reply);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  if (size < 1) return 0;
  using Service = server::PsService;
  const std::unique_ptr<Service> service = NewService((data[0] & 1) != 0);
  for (size_t at = 1; at + 3 <= size;) {
    const size_t length = std::min<size_t>(size - at - 3, data[at + 1] | data[at + 2] << 8);
    const uint8_t* const request = data + at + 3;
    switch (data[at] % 5) {
      case 0:
        Call(*service, &Service::Connect, request, length);
        break;
      case 1:
        Call(*service, &Service::Gather, request, length);
        break;
      case 2:
        Call(*service, &Service::Heartbeat, request, length);
        break;
      case 3:
        Call(*service, &Service::Goodbye, request, length);
        break;
      case 4:
        Call(*service, &Service::Status, request, length);
        break;
    }
    at += 3 + length;
  }
  return 0;
}
