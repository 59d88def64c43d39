"""Asks one line of a port of this host and prints the answer: client.py PORT WORD..."""
import socket
import sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as s:
    s.sendall((" ".join(sys.argv[2:]) + "\n").encode())
    print(s.makefile().readline().strip())
