"""Takes so many MB, holds them while a file `hold` is there, and says so."""
import os
import sys

held = []
for _ in range(int(sys.argv[1])):
    held.append(bytearray(b"x") * (1 << 20))
print("holding", len(held), flush=True)
if os.path.exists("hold"):
    open("hold").read()  # a FIFO: until the test writes
