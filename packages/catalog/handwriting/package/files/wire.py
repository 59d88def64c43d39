"""Messages on a TCP connection: a JSON header, then raw bytes.

A message is the header's length (4 bytes, big endian), the header as JSON, and as many
bytes as its field "bytes" says. Vectors travel as little-endian doubles. Nothing
received is ever executed or unpickled.
"""

import json
import socket
import struct
import sys
from array import array

MAX_HEADER = 1 << 16
MAX_BODY = 1 << 26
_LENGTH = struct.Struct(">I")


class Malformed(Exception):
    """The peer does not speak this protocol."""


def send(sock, header, body=b""):
    text = json.dumps(dict(header, bytes=len(body))).encode("utf-8")
    sock.sendall(_LENGTH.pack(len(text)) + text + body)


def receive(sock):
    """(header, body); ConnectionError when the peer has gone, Malformed when it is none of ours."""
    length, = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    if length > MAX_HEADER:
        raise Malformed("a header of {} bytes".format(length))
    try:
        header = json.loads(_exactly(sock, length).decode("utf-8"))
        count = int(header["bytes"])
    except (ValueError, KeyError, TypeError):
        raise Malformed("a header that is not ours")
    if not 0 <= count <= MAX_BODY:
        raise Malformed("a body of {} bytes".format(count))
    return header, _exactly(sock, count)


def _exactly(sock, count):
    parts = []
    while count:
        part = sock.recv(min(count, 1 << 16))
        if not part:
            raise ConnectionError("connection closed by the peer")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def connect(address, timeout):
    """A connection to address whose every wait is bounded by timeout seconds."""
    sock = socket.create_connection(address, timeout=timeout)
    if sock.getsockname() == sock.getpeername():
        # Nobody listens there; the kernel picked the wanted port as our own.
        sock.close()
        raise ConnectionRefusedError("nobody listens there")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


def pack(vector):
    """The bytes of an array of doubles."""
    return _little_endian(vector).tobytes()


def unpack(body, count):
    """The array of count doubles in body."""
    if len(body) != 8 * count:
        raise Malformed("{} bytes where {} doubles belong".format(len(body), count))
    return _little_endian(array("d", body))


def _little_endian(vector):
    if sys.byteorder == "little":
        return vector
    vector = vector[:]
    vector.byteswap()
    return vector
