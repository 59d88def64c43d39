"""Runs a command of ssh on a terminal of 24 by 80 and makes that 50 by 132 once the other side has told its size."""
import fcntl, os, pty, struct, sys, termios


def size(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


pid, master = pty.fork()
if pid == 0:
    os.read(0, 1)  # until the size is set
    os.execvp(sys.argv[1], sys.argv[1:])
size(24, 80)
os.write(master, b"\n")
said, changed = b"", False
while True:
    try:
        more = os.read(master, 1 << 16)
    except OSError:  # the other end is closed
        more = b""
    if not more:
        break
    said += more
    if not changed and b"24 80" in said:
        size(50, 132)
        changed = True
_, end = os.waitpid(pid, 0)
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(end))
