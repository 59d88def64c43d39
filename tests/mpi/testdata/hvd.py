"""What Horovod reads of where it runs (horovod/common/mpi, horovod/common/gloo): checked, and agreed upon by all."""

import os

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
local, locals_ = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]), int(os.environ["OMPI_COMM_WORLD_LOCAL_SIZE"])
assert (rank, size) == (comm.rank, comm.size)
assert 0 <= local < locals_ == 2, (local, locals_)
assert os.environ["HOROVOD_FUSION_THRESHOLD"] == "33554432"
assert os.environ["OMPI_MCA_pml"] == "ob1" and os.environ["OMPI_MCA_btl"] == "^openib,vader"

places = comm.allgather((os.environ["MUSTER_INSTANCE"], local))
assert len(set(places)) == size, places
averaged = comm.allreduce(float(rank)) / size  # what DistributedOptimizer does with a gradient
assert averaged == (size - 1) / 2
with open(f"rank-{rank}", "w") as f:
    f.write(f"rank {rank} of {size} local {local} of {locals_} average {averaged}\n")
