"""Two processes that use what CPU they get until a file `enough` is there; what they used, and how long that took."""
import os
import time

began = time.monotonic()
for _ in range(2):
    if os.fork() == 0:
        while not os.path.exists("enough"):
            for _ in range(100000):
                pass
        os._exit(0)
for _ in range(2):
    os.wait()
t = os.times()
print("used", t.children_user + t.children_system)
print("elapsed", time.monotonic() - began, flush=True)
