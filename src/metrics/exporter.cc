#include "metrics/exporter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace regatta::metrics {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxRequestBytes = 8192;
constexpr size_t kMaxConnections = 64;  // one more takes the place of the oldest
constexpr size_t kAcceptedAtOnce = 16;  // before they are looked at: none of them is closed for another of them
constexpr std::chrono::seconds kTimeout(5);

std::string Response(const char* status, std::string_view type, std::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", base::View(type), "\r\nContent-Length: ", body.size(),
                      "\r\nConnection: close\r\n\r\n", base::View(body));
}

// A listening socket on 127.0.0.1:port, or -1 with errno. `port` becomes the one that was bound.
int Listen(int& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
             sizeof on);  // a restart does not wait for old connections to be forgotten
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, generic, size) == 0 && listen(fd, SOMAXCONN) == 0 && getsockname(fd, generic, &size) == 0) {
    port = ntohs(address.sin_port);
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

struct Exporter::Connection {
  explicit Connection(int socket) : fd(socket) {}
  ~Connection() { close(fd); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const int fd;
  const Clock::time_point end = Clock::now() + kTimeout;
  std::string in;
  std::string out;  // not empty: the answer, `sent` bytes of which are gone
  size_t sent = 0;
  bool answered = false;  // what still comes is thrown away: closing on it would take the answer back from the peer
  bool closing = false;

  bool sending() const { return !out.empty() && !answered; }
};

absl::StatusOr<std::unique_ptr<Exporter>> Exporter::Start(int port, Collect collect) {
  const int wanted = port;
  const int listener = Listen(port);
  if (listener < 0) {
    const absl::Status why = base::ErrnoStatus("cannot listen on", absl::StrCat("127.0.0.1:", wanted));
    return absl::FailedPreconditionError(
        absl::StrCat("--metrics_port ", wanted, ": ", why.message(), "; choose another, or 0 for any free one"));
  }
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    const absl::Status why = base::ErrnoStatus("cannot make an", "eventfd");
    close(listener);
    return why;
  }
  std::unique_ptr<Exporter> exporter(new Exporter(std::move(collect), listener, wake, port));
  exporter->thread_ = std::thread([exporter = exporter.get()] { exporter->Run(); });
  return exporter;
}

Exporter::Exporter(Collect collect, int listener, int wake, int port)
    : collect_(std::move(collect)), listener_(listener), wake_(wake), port_(port) {}

Exporter::~Exporter() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  connections_.clear();
  close(listener_);
  close(wake_);
}

std::string Exporter::url() const { return absl::StrCat("http://127.0.0.1:", port_, "/metrics"); }

void Exporter::Run() {
  std::vector<pollfd> polled;
  while (true) {
    polled.assign({{wake_, POLLIN, 0}});
    for (const auto& connection : connections_)
      polled.push_back({connection->fd, static_cast<int16_t>(connection->sending() ? POLLOUT : POLLIN), 0});
    polled.push_back({listener_, POLLIN, 0});
    const int ready = poll(polled.data(), polled.size(), connections_.empty() ? -1 : 250);
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && polled.front().revents != 0) return;
    const auto now = Clock::now();
    const size_t served = connections_.size();
    for (size_t i = 0; i < served; ++i) {
      Connection& connection = *connections_[i];
      if (ready > 0 && polled[i + 1].revents != 0) Serve(connection);
      if (now >= connection.end) connection.closing = true;
    }
    std::erase_if(connections_, [](const auto& connection) { return connection->closing; });
    if (ready > 0 && polled.back().revents != 0) Accept();
  }
}

void Exporter::Accept() {
  for (size_t i = 0; i < kAcceptedAtOnce; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Out of files, poll would say again at once that somebody waits.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return;
    }
    // The oldest, whatever it does: if only those that have not asked were closed, clients that ask and stay would
    // leave one place for all others.
    if (connections_.size() >= kMaxConnections) connections_.erase(connections_.begin());
    connections_.push_back(std::make_unique<Connection>(fd));
  }
}

void Exporter::Serve(Connection& connection) {
  if (!connection.sending()) Receive(connection);
  if (connection.sending()) Send(connection);
}

// Once the request's head is whole there is an answer.
void Exporter::Receive(Connection& connection) {
  char bytes[2048];
  const ssize_t n = recv(connection.fd, bytes, sizeof bytes, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) connection.closing = true;
  if (n <= 0 || connection.answered) return;
  connection.in.append(bytes, static_cast<size_t>(n));
  if (absl::StrContains(connection.in, "\r\n\r\n") || absl::StrContains(connection.in, "\n\n")) {
    connection.out = Answer(connection.in);
  } else if (connection.in.size() > kMaxRequestBytes) {
    connection.out = Response("431 Request Header Fields Too Large", "text/plain", "the request is too long\n");
  }
}

void Exporter::Send(Connection& connection) {
  const std::string& out = connection.out;
  const ssize_t n = send(connection.fd, out.data() + connection.sent, out.size() - connection.sent, MSG_NOSIGNAL);
  if (n < 0) {
    connection.closing = errno != EAGAIN && errno != EINTR;
    return;
  }
  connection.sent += static_cast<size_t>(n);
  if (connection.sent < out.size()) return;
  connection.answered = true;
  shutdown(connection.fd, SHUT_WR);
}

std::string Exporter::Answer(std::string_view request) {
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const std::string_view method = line.substr(0, line.find(' '));
  std::string_view path = line.substr(std::min(line.size(), method.size() + 1));
  path = path.substr(0, path.find_first_of(" ?"));
  if (method != "GET" && method != "HEAD")
    return Response("405 Method Not Allowed", "text/plain", "want GET /metrics\n");
  if (path != "/metrics") return Response("404 Not Found", "text/plain", "want /metrics\n");
  Exposition exposition;
  collect_(exposition);
  const std::string text = exposition.Text();
  std::string response = Response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text);
  if (method == "HEAD") response.resize(response.size() - text.size());
  return response;
}

}  // namespace regatta::metrics
