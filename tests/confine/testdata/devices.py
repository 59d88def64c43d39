"""Opens devices: those that every program has, and what it makes itself, in NODES, of the numbers that it is given."""
import errno
import os
import sys


def attempt(word, act):
    try:
        act()
        print(word, "ok", flush=True)
    except OSError as e:
        print(word, errno.errorcode[e.errno], flush=True)


def use(path):
    fd = os.open(path, os.O_RDWR)
    os.write(fd, b"x")
    os.close(fd)


attempt("null", lambda: use("/dev/null"))
for spec in sys.argv[1:]:
    if spec.startswith("/"):
        attempt(spec, lambda: os.close(os.open(spec, os.O_RDONLY)))
        continue
    major, minor = map(int, spec.split(":"))
    node = os.path.join(os.environ.get("NODES", "."), "node-" + spec.replace(":", "-"))
    attempt("make-" + spec, lambda: os.mknod(node, 0o600 | 0o020000, os.makedev(major, minor)))
    attempt("open-" + spec, lambda: os.close(os.open(node, os.O_RDONLY)))
