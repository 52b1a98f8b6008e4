// Serves the process's metrics to Prometheus: GET /metrics over HTTP/1.1, an answer a connection. One thread, which
// sleeps while nobody asks; connections that say too much, too little or nothing are closed after a while, or at once
// where there are too many: whoever comes last is served.
// Thread-safety: Start and the destructor belong to one thread; `collect` is called on the exporter's own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"
#include "metrics/exposition.h"

namespace regatta::metrics {

class Exporter {
 public:
  using Collect = std::function<void(Exposition&)>;

  // Listens on `port` of the loopback address 127.0.0.1; 0 = any free one. FAILED_PRECONDITION names a port that cannot
  // be had.
  static absl::StatusOr<std::unique_ptr<Exporter>> Start(int port, Collect collect);
  // Afterwards `collect` is called no more.
  ~Exporter();

  int port() const { return port_; }
  std::string url() const;  // "http://127.0.0.1:9100/metrics"

 private:
  struct Connection;
  Exporter(Collect collect, int listener, int wake, int port);
  void Run();
  void Accept();
  void Serve(Connection& connection);
  static void Send(Connection& connection);
  void Receive(Connection& connection);
  std::string Answer(std::string_view request);

  const Collect collect_;
  const int listener_;
  const int wake_;  // an eventfd: readable when the exporter is to end
  const int port_;
  std::vector<std::unique_ptr<Connection>> connections_;  // the thread's
  std::thread thread_;
};

}  // namespace regatta::metrics
