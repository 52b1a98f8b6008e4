#include "wire/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <glog/logging.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cluster/endpoint.h"

namespace regatta::wire {
namespace {

constexpr int kBacklog = 4096;
constexpr int kAcceptedAtOnce = 16;              // of a socket
constexpr int kBusyMillis = 2, kBusyLooks = 10;  // then one is accepted nevertheless
constexpr std::chrono::milliseconds kPause(20);  // when there is no descriptor left
constexpr rlim_t kOwnFiles = 128;                // descriptors, or a quarter of all if that is less
constexpr std::chrono::seconds kFlooded(2);      // since a connection was closed by a limit
constexpr int kSilenceMillis = 20'000;           // of a peer that does not acknowledge what it was sent

struct AddressList {
  explicit AddressList(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    error = getaddrinfo(host.c_str(), nullptr, &hints, &first);
  }
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
  addrinfo* first = nullptr;
  int error = 0;
};

in_port_t& PortOf(sockaddr* address) {
  return address->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(address)->sin_port;
}

// A socket that listens at `address`, whose port is filled in; -1 with errno.
int ListenAt(sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int yes = 1, no = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  // Connections inherit these.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilenceMillis, sizeof kSilenceMillis);
  if (address->sa_family == AF_INET6) {
    const bool any = IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<sockaddr_in6*>(address)->sin6_addr);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, any ? &no : &yes, sizeof no);
  }
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  if (bind(fd, address, size) == 0 && listen(fd, kBacklog) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bound_size) == 0) {
    PortOf(address) = PortOf(reinterpret_cast<sockaddr*>(&bound));
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

absl::StatusOr<int> Listener::Bind(const std::string& endpoint) {
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) return absl::InvalidArgumentError(absl::StrCat(endpoint, " names no port"));
  ASSIGN_OR_RETURN(const std::string host, cluster::ParseHost(endpoint.substr(0, colon)));
  int port = atoi(endpoint.c_str() + colon + 1);
  const bool any = cluster::IsWildcard(host);
  std::vector<int> mine;
  int error = 0;
  for (const std::string& name : any ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector<std::string>{host}) {
    const AddressList found(name);
    if (found.error != 0)
      return absl::FailedPreconditionError(
          absl::StrCat("cannot listen on ", endpoint, ": ", gai_strerror(found.error)));
    for (addrinfo* address = found.first; address != nullptr; address = address->ai_next) {
      PortOf(address->ai_addr) = htons(static_cast<uint16_t>(port));
      const int fd = ListenAt(address->ai_addr, address->ai_addrlen);
      if (fd < 0) {
        error = errno;
        continue;
      }
      mine.push_back(fd);
      port = ntohs(PortOf(address->ai_addr));
    }
    if (any && !mine.empty()) break;  // :: is both families'
  }
  const bool taken = error == EADDRINUSE || error == EACCES;  // by somebody, at one of the host's addresses
  if (!mine.empty() && !taken) {
    sockets_.insert(sockets_.end(), mine.begin(), mine.end());
    return port;
  }
  for (const int fd : mine) close(fd);
  return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", endpoint,
                                                    ": the port is in use, or the address is not this machine's (",
                                                    strerror(error), ")"));
}

absl::Status Listener::Start(std::function<void(int fd)> accepted, std::function<bool()> busy) {
  accepted_ = std::move(accepted);
  busy_ = std::move(busy);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return absl::FailedPreconditionError(absl::StrCat("cannot listen: ", strerror(errno)));
  accepts_ = std::thread([this] { Accept(); });
  watches_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

void Listener::Stop() {
  if (accepts_.joinable()) {
    const uint64_t one = 1;
    PCHECK(write(wake_, &one, sizeof one) == sizeof one);
    accepts_.join();
    close(wake_);
    {
      base::MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    watches_.join();
  }
  for (const int fd : sockets_) close(fd);
  sockets_.clear();
}

int Listener::MostConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<int>::max();
  return static_cast<int>(
      std::min<rlim_t>(limit.rlim_cur - std::min(kOwnFiles, limit.rlim_cur / 4), std::numeric_limits<int>::max()));
}

bool Listener::AcceptOne(int socket) {
  const int fd = accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= most_) {  // the lowest number that is free
    close(fd);
    LOG_EVERY_N(WARNING, 500) << "closed a new connection: the limit of open files is near; raise it (ulimit -n)";
    std::this_thread::sleep_for(kPause);
    return false;
  }
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      LOG_EVERY_N(WARNING, 500) << "cannot accept a connection: " << strerror(errno)
                                << "; raise the limit of open files (ulimit -n)";
      std::this_thread::sleep_for(kPause);
    }
    return errno == EINTR || errno == ECONNABORTED;
  }
  if (!connections_.Add(fd)) {
    close(fd);
    return true;
  }
  {
    base::MutexLock lock(mu_);
    ++added_;
    changed_.NotifyAll();
  }
  accepted_(fd);
  return true;
}

void Listener::Watch() {
  uint64_t closed = 0;
  std::chrono::steady_clock::time_point flooded_until;
  base::MutexLock lock(mu_);
  while (!stopping_) {
    const uint64_t added = added_;
    mu_.unlock();
    const auto next = connections_.EnforceLimits();
    const auto now = std::chrono::steady_clock::now();
    if (connections_.closed() != closed) flooded_until = now + kFlooded;
    closed = connections_.closed();
    freed_.ReturnIfGrown(
        base::ResidentBytes(), now,
        now < flooded_until ? base::FreedMemory::Keeps::kNothing : base::FreedMemory::Keeps::kWorkingSet);
    mu_.lock();
    if (next.has_value())
      changed_.WaitFor(mu_, *next);
    else
      while (!stopping_ && added == added_) changed_.Wait(mu_);
  }
}

void Listener::Accept() {
  std::vector<pollfd> polled;
  for (const int fd : sockets_) polled.push_back({fd, POLLIN, 0});
  polled.push_back({wake_, POLLIN, 0});
  int waited = 0;
  while (true) {
    poll(polled.data(), polled.size(), -1);
    if (polled.back().revents != 0) return;
    // What has been accepted is looked at first: a flood of connections is as fast as this server, and no faster.
    const bool busy = busy_();
    if (busy && ++waited < kBusyLooks) {
      poll(&polled.back(), 1, kBusyMillis);
      continue;
    }
    waited = 0;
    const int most = busy ? 1 : kAcceptedAtOnce;
    for (size_t i = 0; i + 1 < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      for (int n = 0; n < most && AcceptOne(polled[i].fd); ++n) {
      }
    }
  }
}

}  // namespace regatta::wire
