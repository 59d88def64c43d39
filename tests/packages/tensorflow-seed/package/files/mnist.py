"""Stands in for a user's TensorFlow script: tells what it was given, needs no TensorFlow.

Prints its arguments as one JSON list. As ps it then serves on its address until it is told to stop, as a worker
it ends as soon as every ps has been reached.
"""

import json
import socket
import sys
import time


def main():
    print(json.dumps(sys.argv[1:]), flush=True)
    given = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:])
    servers = [s.rsplit(":", 1) for s in given["ps_hosts"].split(",") if s]
    if given["job_name"] == "ps":
        serve(int(servers[int(given["task_index"])][1]))
    for host, port in servers:
        reach(host, int(port))


def serve(port):
    with socket.create_server(("", port)) as listener:
        while True:
            listener.accept()[0].close()


def reach(host, port):
    while True:
        try:
            socket.create_connection((host, port)).close()
            return
        except ConnectionRefusedError:  # not up yet
            time.sleep(0.05)


if __name__ == "__main__":
    main()
