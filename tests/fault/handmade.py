"""A peer made by hand: HTTP/2, gRPC, protobuf and a lane's frames as bytes, so that every one of them can be wrong."""
import select
import socket
import ssl
import struct
import time

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WINDOW = (1 << 31) - 1
SERVICE = "/regatta.ps.ParameterServer/"
HEALTH = "/grpc.health.v1.Health/Check"
VERBS = {name: i for i, name in enumerate(
    "NONE HELLO PULL PUSH ADD PULL_DENSE PUSH_DENSE ADD_DENSE LEAVE COUNT_ROWS READ_ROWS LOAD_ROWS CLEAR READ_DENSE "
    "LOAD_DENSE BEGIN".split())} | {"BEGIN_CUT": 20, "END_CUT": 21, "CLEAR_LANE": 22, "COMBINE": 23}


class Gone(Exception):
    """The server has closed the connection."""


# ---- protobuf ----

def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(*fields):
    """Fields as (number, value): an int is a varint, a float a double, text and bytes are themselves."""
    out = b""
    for number, value in fields:
        if isinstance(value, (bool, int)):
            out += varint(number << 3) + varint(int(value))
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            data = value.encode() if isinstance(value, str) else bytes(value)
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def parse(data):
    """Values by field number, in lists; nested messages are bytes."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = 8 if tag & 7 == 1 else 4
            value, at = data[at:at + size], at + size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


# ---- HPACK: written without indexing; read without Huffman's code, which gRPC does not write ----

STATIC = [(":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
          (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
          (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500")] + [(name, "") for name in (
              "accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age "
              "allow authorization cache-control content-disposition content-encoding content-language content-length "
              "content-location content-range content-type cookie date etag expect expires from host if-match "
              "if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards "
              "proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie "
              "strict-transport-security transfer-encoding user-agent vary via www-authenticate").split()]


def hpack_int(value, bits, first=0):
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    return bytes([first | most]) + varint(value - most)


def literal(name, value):
    name, value = name.encode(), value if isinstance(value, bytes) else value.encode()
    return b"\x00" + hpack_int(len(name), 7) + name + hpack_int(len(value), 7) + value


class HeaderReader:
    def __init__(self):
        self.dynamic = []

    def read(self, data):
        found, at = {}, 0
        while at < len(data):
            byte = data[at]
            if byte & 0x80:
                index, at = self.number(data, at, 7)
                name, value = self.entry(index)
            elif byte & 0xe0 == 0x20:
                _, at = self.number(data, at, 5)
                continue
            else:
                index, at = self.number(data, at, 6 if byte & 0xc0 == 0x40 else 4)
                name = self.entry(index)[0] if index else None
                if name is None:
                    name, at = self.text(data, at)
                value, at = self.text(data, at)
                if byte & 0xc0 == 0x40:
                    self.dynamic.insert(0, (name, value))
            found[name] = value
        return found

    def entry(self, index):
        return STATIC[index - 1] if index <= len(STATIC) else self.dynamic[index - len(STATIC) - 1]

    @staticmethod
    def number(data, at, bits):
        most = (1 << bits) - 1
        value = data[at] & most
        at += 1
        if value < most:
            return value, at
        more, at = read_varint(data, at)
        return value + more, at

    def text(self, data, at):
        size, end = self.number(data, at, 7)
        return data[end:end + size].decode(errors="replace"), end + size


# ---- HTTP/2 ----

def http2_frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def grpc_message(data, compressed=False):
    return struct.pack(">BI", compressed, len(data)) + data


class Access:
    """How a peer comes in: in the clear, or with the job's certificate, and perhaps with a token."""

    def __init__(self, folder=None, token=None):
        self.folder = folder
        self.token = (folder / token).read_text().strip() if folder and token else None

    def wrap(self, sock):
        if not self.folder:
            return sock
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.folder / "ca.crt")
        context.load_cert_chain(self.folder / "tls.crt", self.folder / "tls.key")
        context.set_alpn_protocols(["h2"])
        return context.wrap_socket(sock, server_hostname="127.0.0.1")


class Http2:
    """A connection. Calls are streams 1, 3, 5, …; what comes is kept by stream."""

    def __init__(self, endpoint, access=None, timeout=10):
        host, port = endpoint.rsplit(":", 1)
        self.access = access or Access()
        try:
            plain = socket.create_connection((host, int(port)), timeout)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = self.access.wrap(plain)
            self.sock.settimeout(timeout)
            self.sock.sendall(PREFACE + http2_frame(SETTINGS, 0, 0, struct.pack(">HIHI", 1, 0, 4, WINDOW)) +
                              http2_frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - 65535)))
        except (OSError, ssl.SSLError) as error:
            raise Gone(str(error)) from None
        self.next, self.buffer, self.reader = 1, b"", HeaderReader()
        self.windows = {0: 65535}
        self.initial, self.piece = 65535, 1 << 14  # of a stream's window; bytes of a DATA frame
        self.headers, self.data, self.reset = {}, {}, set()

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (OSError, ssl.SSLError) as error:
            raise Gone(str(error)) from None

    def head(self, path, *more):
        """The header block of a call."""
        fields = [(":method", "POST"), (":scheme", "https" if self.access.folder else "http"), (":path", path),
                  (":authority", "127.0.0.1"), ("te", "trailers"), ("content-type", "application/grpc")]
        if self.access.token:
            fields.append(("authorization", f"Bearer {self.access.token}"))
        return b"".join(literal(name, value) for name, value in [*fields, *more])

    def open(self, path, *more):
        stream, self.next = self.next, self.next + 2
        self.windows[stream] = self.initial
        self.send(http2_frame(HEADERS, END_HEADERS, stream, self.head(path, *more)))
        return stream

    def write(self, stream, data, end=False):
        """Within the server's windows."""
        data = memoryview(data)
        while True:
            room = min(len(data), self.windows[0], self.windows[stream], self.piece)
            if data and room <= 0:
                if self.status(stream) is not None:
                    return
                self.step()
                continue
            last = room == len(data)
            self.send(http2_frame(DATA, END_STREAM if end and last else 0, stream, data[:room]))
            self.windows[0] -= room
            self.windows[stream] -= room
            data = data[room:]
            if last:
                return

    def step(self):
        """Takes one frame."""
        while not self.whole():
            try:
                got = self.sock.recv(1 << 16)
            except (OSError, ssl.SSLError) as error:
                raise Gone(str(error)) from None
            if not got:
                raise Gone("the server closed the connection")
            self.buffer += got
        size = int.from_bytes(self.buffer[:3], "big")
        kind, flags = self.buffer[3], self.buffer[4]
        stream = int.from_bytes(self.buffer[5:9], "big")
        payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
        if kind == DATA:
            self.data[stream] = self.data.get(stream, b"") + payload
        elif kind == HEADERS:
            self.headers.setdefault(stream, {}).update(self.reader.read(payload))
        elif kind == RST_STREAM:
            self.reset.add(stream)
        elif kind == SETTINGS and not flags & ACK:
            for at in range(0, size, 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == 4:
                    for other in self.windows:
                        self.windows[other] += (value - self.initial) if other else 0
                    self.initial = value
                elif name == 5:
                    self.piece = min(value, 1 << 20)
            self.send(http2_frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(http2_frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            self.windows[stream] = self.windows.get(stream, self.initial) + int.from_bytes(payload, "big")
        elif kind == GOAWAY and int.from_bytes(payload[4:8], "big") != 0:
            raise Gone("the server says goodbye")

    def whole(self):
        """Whether a frame has come."""
        return len(self.buffer) >= 9 and len(self.buffer) >= 9 + int.from_bytes(self.buffer[:3], "big")

    def drain(self, seconds=0.0):
        """Takes what has come, or comes within so long."""
        select.select([self.sock], [], [], seconds)
        timeout = self.sock.gettimeout()
        self.sock.setblocking(False)
        try:
            while got := self.sock.recv(1 << 16):
                self.buffer += got
            raise Gone("the server closed the connection")
        except (BlockingIOError, ssl.SSLWantReadError):
            pass  # with TLS what came may be no data
        except (OSError, ssl.SSLError) as error:
            raise Gone(str(error)) from None
        finally:
            self.sock.settimeout(timeout)
        while self.whole():
            self.step()

    def status(self, stream):
        """(code, text) of a call that is over, None before."""
        found = self.headers.get(stream, {})
        if "grpc-status" in found:
            return int(found["grpc-status"]), found.get("grpc-message", "")
        return (1, "reset") if stream in self.reset else None

    def end(self, stream):
        """Waits for a call's end: (code, text, reply's bytes)."""
        while self.status(stream) is None:
            self.step()
        return (*self.status(stream), self.data.pop(stream, b"")[5:])

    def call(self, path, data, *more):
        stream = self.open(path, *more)
        self.write(stream, grpc_message(data), end=True)
        return self.end(stream)

    def cancel(self, stream):
        self.send(http2_frame(RST_STREAM, 0, stream, struct.pack(">I", 8)))


# ---- a worker ----

def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC = crc_table()


def crc32c(data, crc=0):
    crc ^= 0xffffffff
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def times(a, b):
    """The product of two polynomials modulo CRC32C's, as zlib's crc32_combine has it."""
    product, bit = 0, 1 << 31
    while bit:
        if a & bit:
            product ^= b
        bit >>= 1
        b = b >> 1 ^ (0x82f63b78 if b & 1 else 0)
    return product


def crc32c_joined(crc, more, size):
    """Of bytes with the first checksum and `size` bytes with the second behind them."""
    power, shift = 1 << 31, 1 << 23  # 1, and x to the power of 8
    while size:
        if size & 1:
            power = times(power, shift)
        shift = times(shift, shift)
        size >>= 1
    return times(power, crc) ^ more


def crc32c_repeated(block, count):
    """Of so many blocks, in no time."""
    crc, one, size = 0, crc32c(block), len(block)
    while count:
        if count & 1:
            crc = crc32c_joined(crc, one, size)
        one, size, count = crc32c_joined(one, one, size), 2 * size, count >> 1
    return crc


class Worker:
    """A worker of a job, whose every message is made here. Verbs give (code, text, reply's fields)."""

    def __init__(self, endpoint, rank, incarnation, access=None, job=0, timeout=10):
        self.endpoint, self.access, self.timeout = endpoint, access, timeout
        self.id = message((1, rank), (2, incarnation), (3, "by hand"), *([(4, job)] if job else []))
        self.control = Http2(endpoint, access, timeout)

    def close(self):
        self.control.close()

    def call(self, verb, *fields):
        code, text, reply = self.control.call(SERVICE + verb, message(*fields))
        return code, text, parse(reply) if code == 0 else {}

    def connect(self, spec, server=0, protocol=None, *more):
        """`spec` is a JobSpec's bytes, job_spec() for one; the protocol is the server's own if none is given."""
        protocol = protocol or self.call("Status")[2][24][0]
        return self.call("Connect", (1, protocol), (2, self.id), (3, server), (4, spec), *more)

    def heartbeat(self):
        return self.call("Heartbeat", (1, self.id))

    def goodbye(self, failed=False, reason=""):
        return self.call("Goodbye", (1, self.id), (2, failed), (3, reason))

    def gather_request(self, name, payload=b"", timeout=0.0, number=0):
        return message((1, self.id), (2, name), (3, payload), (4, True), (5, timeout), (6, number))

    def gather(self, name, payload=b"", timeout=0.0, number=0):
        code, text, reply = self.control.call(SERVICE + "Gather", self.gather_request(name, payload, timeout, number))
        return code, text, parse(reply) if code == 0 else {}

    def lane(self, lane, hello=True):
        return Lane(self, lane, hello)


def job_spec(tables, mode="async", workers=1, servers=1, lanes=2, nan_policy="abort", on_loss="fail", ack="", wait=0):
    return message((1, mode), (2, workers), (3, servers), (4, lanes), (5, tables), (6, nan_policy), (7, on_loss), (8, ack),
                   *([(9, wait)] if wait else []))


class Lane:
    """A stream of frames on a connection of its own."""

    def __init__(self, worker, lane, hello=True):
        self.worker, self.sent, self.at = worker, 0, 5
        self.http2 = Http2(worker.endpoint, worker.access, worker.timeout)
        self.stream = self.http2.open(SERVICE + "Lane")
        self.hello = self.ask("HELLO", (11, lane), (12, worker.id)) if hello else None

    def close(self):
        self.http2.close()

    def send(self, header, body=b"", checksum=None, body_crc=None):
        """`header` is a FrameHeader's bytes; a checksum that is not given is the right one. `body_crc` is the body's, for
        a large one: it takes seconds here."""
        frame = message((1, header), *([(2, body)] if body else []))
        if checksum is None and body_crc is not None:
            checksum = crc32c_joined(crc32c(frame[:-len(body)]), body_crc, len(body))
            checksum = crc32c(struct.pack("<Q", self.sent), checksum)
        elif checksum is None:
            checksum = crc32c(struct.pack("<Q", self.sent), crc32c(frame))
        self.sent += 1
        self.http2.write(self.stream, grpc_message(frame + b"\x1d" + struct.pack("<I", checksum)))

    def receive(self):
        """(code, text, header's fields, body) of the next frame; the stream's end as (code, text, {}, b"")."""
        while True:
            data = self.http2.data.get(self.stream, b"")
            if len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[1:5], "big"):
                size = int.from_bytes(data[1:5], "big")
                self.http2.data[self.stream] = data[5 + size:]
                frame = parse(data[5:5 + size])
                header = parse(frame.get(1, [b""])[0])
                return (header.get(13, [0])[0], header.get(14, [b""])[0].decode(errors="replace"), header,
                        frame.get(2, [b""])[0])
            if (over := self.http2.status(self.stream)) is not None:
                return (*over, {}, b"")
            self.http2.step()

    def ask(self, verb, *fields, body=b"", number=None, body_crc=None):
        """A request with the header's fields given, and its answer."""
        number = self.sent + 1 if number is None else number
        self.send(message((1, VERBS[verb]), (2, number), *fields), body, body_crc=body_crc)
        return self.receive()


def await_true(condition, seconds):
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return met
