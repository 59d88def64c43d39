"""A ring of MPI processes: each hands its rank to the next, all agree on the sum, and each leaves what it saw."""

import os
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
before = comm.sendrecv(comm.rank, dest=(comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
total = comm.allreduce(comm.rank + 1)
assert before == (comm.rank - 1) % comm.size, before
assert total == comm.size * (comm.size + 1) // 2, total

told = " ".join(f"{name}={os.environ.get('MUSTER_' + name, '')}" for name in ("INSTANCE", "ATTEMPT", "GENERATION", "WORLD_SIZE"))
with open(f"rank-{comm.rank}", "w") as f:
    f.write(f"rank {comm.rank} of {comm.size} sum {total} {told}\n")

# One that is to be killed, in its first life: it says who it is and waits among the others.
if os.environ.get("MUSTER_ATTEMPT") == os.environ.get("LINGER"):
    with open(f"pid-{comm.rank}.new", "w") as f:
        f.write(str(os.getpid()))
    os.rename(f"pid-{comm.rank}.new", f"pid-{comm.rank}")
    time.sleep(600)
# Rank 0 keeps all of them until somebody makes the file.
if comm.rank == 0 and "UNTIL" in os.environ:
    while not os.path.exists(os.environ["UNTIL"]):
        time.sleep(0.02)
comm.Barrier()
