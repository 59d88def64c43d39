"""A store of keys in a file, spoken to over TCP: GET k, PUT k v, and on the admin's port COUNT, PID."""
import os
import socketserver
import sys
import threading

conf = dict(line.strip().split("=", 1) for line in open(sys.argv[1]) if "=" in line)
path = os.path.join(conf["data"], "keys")
lock = threading.Lock()


def load():
    try:
        with open(path) as f:
            return dict(line.rstrip("\n").split("=", 1) for line in f)
    except FileNotFoundError:
        return {}


keys = load()


class Store(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            verb, *rest = line.decode().split()
            with lock:
                if verb == "PUT":
                    keys[rest[0]] = rest[1]
                    with open(path, "a") as f:
                        f.write("=".join(rest) + "\n")
                    answer = "OK"
                elif verb == "GET":
                    answer = keys.get(rest[0], "NONE")
                else:
                    answer = "WHAT"
            self.wfile.write((answer + "\n").encode())


class Admin(socketserver.StreamRequestHandler):
    def handle(self):
        verb = self.rfile.readline().decode().strip()
        with lock:
            answer = {"COUNT": str(len(keys)), "PID": str(os.getpid())}.get(verb, "WHAT")
        self.wfile.write((answer + "\n").encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


store = Server(("", int(conf["listen"])), Store)
admin = Server(("", int(conf["admin"])), Admin)
threading.Thread(target=admin.serve_forever, daemon=True).start()
print("serving", conf["listen"], conf["admin"], flush=True)
store.serve_forever()
