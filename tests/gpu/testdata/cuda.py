"""Uses GPUs by CUDA's driver API alone, as any framework below does.

cuda.py            prints "device UUID" for each device that CUDA shows, or "none" and CUDA's error.
cuda.py anyway     the same without CUDA_VISIBLE_DEVICES: what the container itself shows.
cuda.py hold MB    takes that much memory on the first device, prints "held", and waits to be ended.
"""
import ctypes
import os
import signal
import sys
import uuid


def check(code, what):
    if code:
        sys.exit("%s: CUDA error %d" % (what, code))


def devices(cuda):
    count = ctypes.c_int()
    check(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    for number in range(count.value):
        device = ctypes.c_int()
        check(cuda.cuDeviceGet(ctypes.byref(device), number), "cuDeviceGet")
        yield device


def hold(cuda, megabytes):
    device = next(devices(cuda))
    context, memory, size = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(megabytes << 20)
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), size), "cuMemAlloc")
    check(cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(0), size), "cuMemsetD8")
    check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
    print("held", flush=True)
    signal.pause()


def main(args):
    if args[:1] == ["anyway"]:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    cuda = ctypes.CDLL("libcuda.so.1")
    code = cuda.cuInit(0)
    if code:
        print("none", code, flush=True)
    elif args[:1] == ["hold"]:
        hold(cuda, int(args[1]))
    else:
        for device in devices(cuda):
            name = (ctypes.c_ubyte * 16)()
            check(cuda.cuDeviceGetUuid(name, device), "cuDeviceGetUuid")
            print("device", "GPU-" + str(uuid.UUID(bytes=bytes(name))), flush=True)


main(sys.argv[1:])
