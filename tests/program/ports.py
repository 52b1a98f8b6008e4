"""Ports for the processes of a test."""
import pathlib
import random
import socket


def free_port(host="127.0.0.1"):
    """Below the ports that the kernel gives to connections: nobody takes it before its server listens, or is back."""
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(max(low - 12_000, 1024), low)
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
                return port
            except OSError:
                pass
