#include "client/connection.h"

#include "wire/certificate.h"

namespace regatta::client {

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ClientOptions& options) {
  if (options.credentials != nullptr) RETURN_IF_ERROR(wire::CheckCertificate(*options.credentials));
  ASSIGN_OR_RETURN(const JobLayout layout, JobLayout::Of(options));
  std::unique_ptr<Connection> connection(new Connection);
  ASSIGN_OR_RETURN(connection->control_, JobControl::Join(options, layout));
  ASSIGN_OR_RETURN(connection->data_, GrpcClient::Open(options, layout, *connection->control_));
  return connection;
}

Connection::~Connection() {
  if (control_ != nullptr) control_->Goodbye(absl::CancelledError("the process ends"));
}

}  // namespace regatta::client
