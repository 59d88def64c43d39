"""Threads, processes by every way that Python has, sockets, memory maps and shared memory."""
import asyncio, concurrent.futures, mmap, multiprocessing, os, socket, subprocess, threading
from multiprocessing import shared_memory


def square(n):
    return n * n


async def shout():
    child = await asyncio.create_subprocess_exec("echo", "async", stdout=subprocess.PIPE)
    out, _ = await child.communicate()
    return out.decode().strip()


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        print("threads", sum(pool.map(square, range(10))))
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, sum(pool.map(square, range(10))))
    print("subprocess", subprocess.run(["echo", "ran"], stdout=subprocess.PIPE, check=True).stdout.decode().strip())
    print("asyncio", asyncio.run(shout()))
    block = shared_memory.SharedMemory(create=True, size=4096)
    block.close()
    block.unlink()
    with mmap.mmap(-1, 1 << 20) as area:
        area[0] = 1
    a, b = socket.socketpair()
    a.send(b"x")
    print("socketpair", b.recv(1).decode())
    print("affinity", len(os.sched_getaffinity(0)) > 0)
