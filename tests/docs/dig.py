#!/usr/bin/env python3
"""dig +short @HOST -p PORT [SRV] NAME, for machines without dig: one question over UDP, the answers as dig prints them."""
import socket
import struct
import sys

words = sys.argv[1:]
server, port, kind, name = "127.0.0.1", 53, "A", None
while words:
    word = words.pop(0)
    if word == "-p":
        port = int(words.pop(0))
    elif word.startswith("@"):
        server = word[1:]
    elif word in ("A", "SRV"):
        kind = word
    elif not word.startswith("+"):
        name = word.rstrip(".")
number = {"A": 1, "SRV": 33}[kind]

question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0" + struct.pack(">HH", number, 1)
asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asked.settimeout(10)
asked.sendto(struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + question, (server, port))
text = asked.recv(65535)


def read(at):
    """The name at an offset (RFC 1035, 4.1.4) and where it ends."""
    labels, end = [], None
    while text[at]:
        if text[at] >= 0xC0:
            end = end or at + 2
            at = struct.unpack(">H", text[at : at + 2])[0] & 0x3FFF
            continue
        labels.append(text[at + 1 : at + 1 + text[at]].decode())
        at += 1 + text[at]
    return ".".join(labels) + ".", end or at + 1


at = 12 + len(question)
for _ in range(struct.unpack(">H", text[6:8])[0]):
    _, at = read(at)
    found, _, _, size = struct.unpack(">HHIH", text[at : at + 10])
    at += 10
    if found == 1:
        print(socket.inet_ntoa(text[at : at + 4]))
    elif found == 33:
        print(*struct.unpack(">HHH", text[at : at + 6]), read(at + 6)[0])
    at += size
