"""A tree of so many processes, deaf to TERM, half of them in sessions of their own; then it waits."""
import os
import signal
import sys

signal.signal(signal.SIGTERM, signal.SIG_IGN)
count = int(sys.argv[1])
reader, writer = os.pipe()
for i in range(count - 1):
    if os.fork() == 0:
        if i % 2:
            os.setsid()
        if i % 5 == 0 and os.fork() != 0:  # its child is nobody's: the guard's
            os._exit(0)
        os.write(writer, b"x")
        while True:
            signal.pause()
seen = 0
while seen < count - 1:
    seen += len(os.read(reader, 64))
print("ready", count, flush=True)
while True:
    signal.pause()
