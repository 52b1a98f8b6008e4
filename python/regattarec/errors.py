"""What goes wrong, by kind. Every error of Regatta is an `Error`, so one `except regattarec.Error` catches them all."""


class Error(RuntimeError):
    """An error of Regatta. The message says what went wrong and what to do."""


class CancelledError(Error):
    """The call was told to end, by a signal or by another worker."""


class InvalidArgumentError(Error, ValueError):
    """An argument that cannot be."""


class DeadlineExceededError(Error, TimeoutError):
    """A wait that lasted too long; the message names who is missing."""


class NotFoundError(Error, LookupError):
    """A name, key or file that is not there."""


class AlreadyExistsError(Error):
    """Something of that name is there already."""


class PermissionDeniedError(Error, PermissionError):
    """The token does not allow it."""


class UnauthenticatedError(Error, PermissionError):
    """No token, or one that the servers do not know."""


class ResourceExhaustedError(Error, MemoryError):
    """A limit of memory, disk or messages."""


class FailedPreconditionError(Error):
    """Not now: something else comes first, the job is over, or a step has gradients with NaN or Inf."""


class AbortedError(Error):
    """The job ended for a reason elsewhere."""


class OutOfRangeError(Error, ValueError):
    """A number beyond its bounds."""


class UnimplementedError(Error, NotImplementedError):
    """This version cannot do that."""


class UnavailableError(Error, ConnectionError):
    """A server that does not answer."""


class DataLossError(Error):
    """Data that is damaged, or a loss that is NaN or Inf. A gradient with NaN or Inf is a FailedPreconditionError."""


class InternalError(Error):
    """A fault of Regatta. Please report it."""
