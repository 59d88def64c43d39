"""A gateway before the stores: PING, and GET and PUT to the store that a key belongs to."""
import socket
import socketserver
import sys
import zlib

stores = [tuple(s.rsplit(":", 1)) for s in sys.argv[2].split(",")]


def ask(store, line):
    with socket.create_connection((store[0], int(store[1])), timeout=10) as s:
        s.sendall(line)
        return s.makefile("rb").readline()


class Gateway(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            words = line.split()
            if words == [b"PING"]:
                self.wfile.write(b"PONG %d\n" % len(stores))
            else:
                self.wfile.write(ask(stores[zlib.crc32(words[1]) % len(stores)], line))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


gateway = Server(("", int(sys.argv[1])), Gateway)
print("serving", sys.argv[1], len(stores), flush=True)
gateway.serve_forever()
