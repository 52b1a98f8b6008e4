#include "wire/handshake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cluster/endpoint.h"
#include "wire/bio.h"
#include "wire/freed.h"

namespace regatta::wire {
namespace {

using Clock = std::chrono::steady_clock;

using Context = std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<&SSL_free>>;
using Certificate = std::unique_ptr<X509, Freed<&X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<&EVP_PKEY_free>>;
using Addresses = std::unique_ptr<addrinfo, Freed<&freeaddrinfo>>;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool Await(int fd, short events, Clock::time_point end) {
  pollfd waiting{fd, events, 0};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left, 0))) == 1;
}

// -1 where nobody answers in time.
int Dial(const cluster::Endpoint& endpoint, Clock::time_point end) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found) != 0) return -1;
  const Addresses addresses(found);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    int error = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS && Await(fd, POLLOUT, end)) {
      socklen_t size = sizeof error;
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return fd;
    close(fd);
  }
  return -1;
}

// What CheckCertificate has let pass.
void Use(SSL_CTX* context, const cluster::Credentials& credentials) {
  const Bio cert_bio = Reading(credentials.cert), key_bio = Reading(credentials.key), ca_bio = Reading(credentials.ca);
  if (const Certificate cert(PEM_read_bio_X509(cert_bio.get(), nullptr, nullptr, nullptr)); cert != nullptr)
    SSL_CTX_use_certificate(context, cert.get());
  if (const Key key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr)); key != nullptr)
    SSL_CTX_use_PrivateKey(context, key.get());
  while (true) {
    const Certificate ca(PEM_read_bio_X509(ca_bio.get(), nullptr, nullptr, nullptr));
    if (ca == nullptr) break;
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get());
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ERR_clear_error();
}

void Expect(SSL* session, const std::string& host) {
  in6_addr address;
  if (inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
  } else {
    SSL_set1_host(session, host.c_str());
    SSL_set_tlsext_host_name(session, host.c_str());
  }
}

enum class Outcome {
  kTls,        // both are content
  kRefused,    // it speaks TLS, and somebody is not content
  kNotTls,     // it speaks something else
  kUndecided,  // it went away, or says nothing
};

// Runs `step`, which is SSL_connect or SSL_read, until it ends.
template <typename Step>
Outcome Drive(SSL* session, Clock::time_point end, const Step& step) {
  while (true) {
    ERR_clear_error();
    const int result = step();
    if (result > 0) return Outcome::kTls;
    const int error = SSL_get_error(session, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      if (!Await(SSL_get_fd(session), error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, end)) return Outcome::kUndecided;
      continue;
    }
    if (error != SSL_ERROR_SSL) return Outcome::kUndecided;
    switch (ERR_GET_REASON(ERR_peek_error())) {
      case SSL_R_WRONG_VERSION_NUMBER:
      case SSL_R_HTTP_REQUEST:
      case SSL_R_PACKET_LENGTH_TOO_LONG:
        return Outcome::kNotTls;
      case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return Outcome::kUndecided;
      default:
        return Outcome::kRefused;
    }
  }
}

std::string LastReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return reason == nullptr ? "it hung up" : reason;
}

absl::Status Refused(const cluster::Endpoint& endpoint, const cluster::Credentials& credentials, const SSL* session) {
  const long verdict = SSL_get_verify_result(session);
  const std::string at = endpoint.ToString();
  if (verdict == X509_V_ERR_IP_ADDRESS_MISMATCH || verdict == X509_V_ERR_HOSTNAME_MISMATCH)
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate of the server at ", at, " is not made out to ", endpoint.host,
                     "; make it with `regatta credentials init DIR --host ", endpoint.host, "`, with all the others"));
  if (verdict != X509_V_OK)
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate of the server at ", at, " does not hold before tls_ca, ", credentials.files.ca,
                     " (", X509_verify_cert_error_string(verdict),
                     "); all processes take theirs from one run of `regatta credentials init`"));
  return absl::FailedPreconditionError(
      absl::StrCat("the server at ", at, " refuses this process's certificate, ", credentials.files.cert, " (",
                   LastReason(), "); all processes take theirs from one run of `regatta credentials init`"));
}

absl::Status Explain(const std::string& endpoint, const cluster::Credentials* credentials, Clock::time_point end) {
  ASSIGN_OR_RETURN(const cluster::Endpoint place, cluster::ParseEndpoint(endpoint));
  const Socket socket(Dial(place, end));
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (socket.fd() < 0 || context == nullptr) return absl::OkStatus();
  if (credentials != nullptr) Use(context.get(), *credentials);
  const unsigned char h2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), h2, sizeof h2);
  const Session session(SSL_new(context.get()));
  if (session == nullptr || SSL_set_fd(session.get(), socket.fd()) != 1) return absl::OkStatus();
  if (credentials != nullptr) Expect(session.get(), place.host);
  Outcome outcome = Drive(session.get(), end, [&] { return SSL_connect(session.get()); });
  if (credentials == nullptr) {
    if (outcome != Outcome::kTls && outcome != Outcome::kRefused) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "what listens at ", endpoint,
        " wants TLS, and this process has no credentials: give it REGATTA_TOKEN_FILE and REGATTA_TLS_CERT, "
        "_KEY and _CA as the servers have them (regatta credentials --help)"));
  }
  if (outcome == Outcome::kNotTls)
    return absl::FailedPreconditionError(
        absl::StrCat("what listens at ", endpoint,
                     " does not speak TLS: start the servers with the same credentials as this process, or take "
                     "REGATTA_TOKEN_FILE and REGATTA_TLS_* away from it"));
  // In TLS 1.3 the server judges this side's certificate after this side has done. gRPC speaks first when it is
  // content, and hangs up without a word when it is not.
  if (outcome == Outcome::kTls) {
    char byte = 0;
    outcome = Drive(session.get(), end, [&] { return SSL_read(session.get(), &byte, 1); });
    if (outcome == Outcome::kUndecided && Clock::now() < end) outcome = Outcome::kRefused;
  }
  return outcome == Outcome::kRefused ? Refused(place, *credentials, session.get()) : absl::OkStatus();
}

}  // namespace

// A server that ends in the middle of a handshake looks like one that refuses: what is final is seen twice.
absl::Status ExplainRefusal(const std::string& endpoint, const cluster::Credentials* credentials,
                            std::chrono::milliseconds timeout) {
  const auto end = Clock::now() + timeout;
  if (const absl::Status once = Explain(endpoint, credentials, end); once.ok()) return once;
  return Explain(endpoint, credentials, end);
}

}  // namespace regatta::wire
