"""So many orphans by double forks, and how many of them are zombies in the end."""
import os
import sys
import time

session = os.getsid(0)


def zombies():
    found = 0
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if name.isdigit() and fields[0] == "Z" and int(fields[3]) == session:
            found += 1
    return found


count = int(sys.argv[1])
for _ in range(count):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
end = time.monotonic() + 20
while (left := zombies()) and time.monotonic() < end:  # asked again, the last of them might just be dying
    time.sleep(0.01)
print("orphans", count)
print("zombies", left, flush=True)
