"""Forks until it is refused, at most so often: it could do no harm where nothing stops it."""
import errno
import os
import signal
import sys

children = []
refused = ""
for _ in range(int(sys.argv[1])):
    try:
        pid = os.fork()
    except OSError as e:
        refused = errno.errorcode[e.errno]
        break
    if pid == 0:
        signal.pause()
        os._exit(0)
    children.append(pid)
print("children", len(children))
print("refused", refused, flush=True)
for pid in children:
    os.kill(pid, signal.SIGKILL)
for pid in children:
    os.waitpid(pid, 0)
