#!/usr/bin/env python3
"""Heat on a ring of cells, dealt out among MPI processes.

Each process has a part of the ring and gives its outermost cells to its neighbours before every step. The sum of all
cells must stay what it was: a job that lost or doubled a message does not end well. Rank 0 saves the ring now and then,
and a job that is started again goes on from there.
"""

import argparse
import json
import os
import sys
import time

from mpi4py import MPI

SPREAD = 0.25  # of the difference to the neighbours, in one step


def bounds(cells, rank, size):
    """The first cell of a rank, and the one after its last."""
    return cells * rank // size, cells * (rank + 1) // size


def begin(cells):
    """A ring that is cold but for one warm stretch, or the one that was saved last."""
    saved = os.environ.get("MUSTER_CHECKPOINT", "")
    if saved:
        with open(saved, encoding="utf-8") as f:
            state = json.load(f)
        if len(state["ring"]) != cells:
            sys.exit(f"{saved}: {len(state['ring'])} cells, want {cells}")
        return state["step"], state["ring"]
    return 0, [100.0 if i < cells // 10 else 0.0 for i in range(cells)]


def save(folder, step, ring):
    """Whole or not at all: a name that counts is given last."""
    path = os.path.join(folder, f"heat-{step}.json")
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        json.dump({"step": step, "ring": ring}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def advance(comm, part):
    """One step of this process's part."""
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    before = comm.sendrecv(part[-1], dest=right, source=left)
    after = comm.sendrecv(part[0], dest=left, source=right)
    wide = [before, *part, after]
    return [b + SPREAD * (a - 2 * b + c) for a, b, c in zip(wide, wide[1:], wide[2:])]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--cells", type=int, default=600)
    args.add_argument("--steps", type=int, default=2000)
    args.add_argument("--pace", type=float, default=0, help="seconds between two steps")
    args.add_argument("--checkpoint-every", type=int, default=100)
    args = args.parse_args()

    comm = MPI.COMM_WORLD
    if args.cells < comm.size:
        sys.exit(f"{args.cells} cells for {comm.size} processes")
    print(f"rank {comm.rank} of {comm.size} in {os.environ.get('MUSTER_INSTANCE', MPI.Get_processor_name())}", flush=True)
    step, ring = comm.bcast(begin(args.cells) if comm.rank == 0 else None)
    if step and comm.rank == 0:
        print(f"resumed at step {step}", flush=True)
    first, last = bounds(args.cells, comm.rank, comm.size)
    part, total = ring[first:last], sum(ring)
    folder = os.environ.get("MUSTER_CHECKPOINT_DIR", ".")

    while step < args.steps:
        part = advance(comm, part)
        step += 1
        if step % args.checkpoint_every == 0 or step == args.steps:
            parts = comm.gather(part)
            if comm.rank == 0:
                save(folder, step, [cell for p in parts for cell in p])
                print(f"reporter progress:{step / args.steps:.3f}", file=sys.stderr, flush=True)
        time.sleep(args.pace)

    now = comm.allreduce(sum(part))
    warmest = comm.allreduce(max(part), op=MPI.MAX)
    if abs(now - total) > 1e-6 * total:
        sys.exit(f"rank {comm.rank}: the heat is {now}, and was {total}")
    if comm.rank == 0:
        print(f"done after step {step}: heat {now:.3f}, warmest {warmest:.3f}", flush=True)


main()
