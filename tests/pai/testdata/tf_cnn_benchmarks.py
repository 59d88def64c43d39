"""Stands where the seed's job has TensorFlow's benchmarks: the same command line, no TensorFlow.

Takes the arguments of the job's command and holds every variable that the manual promises against them, against the other
variables and against the machine. Then a parameter server answers on its address for ever; a worker talks to every other
task of the host lists, reads the data, leaves a result, and ends once all other workers have talked to it.
"""
import argparse
import glob
import ipaddress
import os
import pwd
import socket
import sys
import threading
import time

PATIENCE = 60  # seconds; a wait that has gone wrong ends

parser = argparse.ArgumentParser(allow_abbrev=False)
for name in "local_parameter_device batch_size model variable_update data_dir data_name train_dir ps_hosts worker_hosts job_name task_index".split():
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

# The job as its file has it, with what the test sets.
JOB = "tensorflow-distributed-jobguid"
ROLES = ["ps_server", "worker"]
MEMORY = {"ps_server": "8192", "worker": "16384"}
role = {"ps": "ps_server", "worker": "worker"}[args.job_name]
lists = {"ps_server": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")}
index = int(args.task_index)

faults = []


def expect(what, got, want):
    if got != want:
        faults.append(f"{what}: got {got!r}, want {want!r}")


def told(name):
    """The value of a variable, which must be the same under both prefixes."""
    pai, qizhi = os.environ.get("PAI_" + name), os.environ.get("QIZHI_" + name)
    if pai is None or qizhi is None:
        faults.append(f"{name}: PAI_ has {pai!r}, QIZHI_ has {qizhi!r}, want both")
    expect("QIZHI_" + name + " beside PAI_" + name, qizhi, pai)
    return pai or ""


def check():
    expect("the arguments", [args.local_parameter_device, args.batch_size, args.model, args.variable_update, args.data_name],
           ["cpu", "32", "resnet20", "parameter_server", "cifar10"])
    store, user = told("DEFAULT_FS_URI"), pwd.getpwuid(os.getuid()).pw_name
    ip, http, ssh = told("CONTAINER_HOST_IP"), told("CONTAINER_HOST_http_PORT_LIST"), told("CONTAINER_HOST_ssh_PORT_LIST")
    ipaddress.ip_address(ip)
    expect("own address in the host list", lists[role][index], f"{ip}:{http}")
    expect("ports", 0 < int(http) != int(ssh) > 0, True)
    expect("script", os.path.abspath(sys.argv[0]), os.path.join(os.getcwd(), "code", "tf_cnn_benchmarks.py"))
    every = [address for name in ROLES for address in lists[name]]
    expect("addresses of their own", len(set(every)), 4)
    where = f"{store}/path/{JOB}"
    for name, want in {
        # what seed 001's table promises
        "WORK_DIR": os.getcwd(), "DEFAULT_FS_URI": store, "JOB_NAME": JOB, "JOB_VC_NAME": "your_virtual_cluster",
        "USER_NAME": user, "DATA_DIR": where + "/data", "OUTPUT_DIR": where + "/output", "CODE_DIR": where + "/code",
        "CURRENT_TASK_ROLE_NAME": role, "CURRENT_TASK_ROLE_TASK_COUNT": "2", "CURRENT_TASK_ROLE_CPU_COUNT": "2",
        "CURRENT_TASK_ROLE_MEM_MB": MEMORY[role], "CURRENT_TASK_ROLE_GPU_COUNT": "0",
        "CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": args.task_index,
        "JOB_TASK_COUNT": "4", "JOB_TASK_ROLE_COUNT": "2", "JOB_TASK_ROLE_LIST": "ps_server,worker",
        "KILL_ALL_ON_COMPLETED_TASK_NUM": "2", "CONTAINER_HOST_IP": ip,
        "CONTAINER_HOST_PORT_LIST": f"http:{http};ssh:{ssh};",
        "CONTAINER_HOST_http_PORT_LIST": http, "CONTAINER_HOST__http_PORT_LIST": http,
        "CONTAINER_HOST_ssh_PORT_LIST": ssh, "CONTAINER_HOST__ssh_PORT_LIST": ssh,
        "TASK_ROLE_ps_server_HOST_LIST": args.ps_hosts, "TASK_ROLE_worker_HOST_LIST": args.worker_hosts,
        # and what PAI 0.5 tells beside
        "TASK_ROLE_0_HOST_LIST": args.ps_hosts, "TASK_ROLE_1_HOST_LIST": args.worker_hosts,
        "TASK_INDEX": args.task_index, "CONTAINER_HOST_PORT": http, "CONTAINER_SSH_PORT": ssh,
        "USERNAME": user, "TASK_ROLE_NAME": role, "TASK_ROLE_NUM": "2", "TASK_ROLE_INDEX": args.task_index,
        "TASK_CPU_NUM": "2", "TASK_MEM_MB": MEMORY[role], "TASK_GPU_NUM": "0", "TASKS_NUM": "4", "TASK_ROLES_NUM": "2",
        "TASK_ROLE_LIST": "ps_server,worker", "CURRENT_CONTAINER_IP": ip, "CURRENT_CONTAINER_PORT": http,
        "CONTAINER_ID": os.environ.get("CONTAINER_ID"),
    }.items():
        expect(name, told(name), want)
    expect("paths", [args.data_dir, args.train_dir], [where + "/data", where + "/output"])
    expect("file system", store.startswith("file:///"), True)
    expect("without a prefix", [os.environ.get(name) for name in ("FRAMEWORK_NAME", "HADOOP_USER_NAME")], [f"{user}~{JOB}", user])
    expect("APP_ID and CONTAINER_ID", all(os.environ.get(name) for name in ("APP_ID", "CONTAINER_ID")), True)
    with socket.create_connection((ip, int(ssh)), timeout=30) as server:
        expect("at the port of ssh", server.recv(100), b"SSH-2.0-muster\r\n")


def path(uri):
    return uri.removeprefix("file://")


def serve(visitors):
    """Answers who is there, and notes who came."""
    host, port = lists[role][index].rsplit(":", 1)
    listener = socket.create_server((host, int(port)))

    def answer():
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rw") as line:
                visitors.add(line.readline().strip())
                print(f"{role} {index}", file=line, flush=True)

    threading.Thread(target=answer, daemon=True).start()


def visit(name, i):
    """Asks a task of the lists who it is; it may not listen yet."""
    host, port = lists[name][i].rsplit(":", 1)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection((host, int(port)), 5) as connection, connection.makefile("rw") as line:
                print(f"{role} {index}", file=line, flush=True)
                return line.readline().strip()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


check()
if faults:
    sys.exit("\n".join(faults))
came = set()
serve(came)
print("every variable is as promised", flush=True)
if role == "ps_server":
    threading.Event().wait()

met = []
for name in ROLES:
    for i in range(len(lists[name])):
        if (name, i) != (role, index):
            expect(f"who answers at {lists[name][i]}", visit(name, i), f"{name} {i}")
            met.append(f"{name} {i}")
with open(glob.glob(path(args.data_dir) + "/*.bin")[0]) as data:
    rows = data.read().split()
end = time.monotonic() + PATIENCE
while not {f"worker {i}" for i in range(len(lists["worker"])) if i != index} <= came:
    if time.monotonic() > end:
        faults.append(f"only {came} came")
        break
    time.sleep(0.02)
if faults:
    sys.exit("\n".join(faults))
with open(f"{path(args.train_dir)}/worker-{index}", "w") as result:
    print(f"met {', '.join(met)}; read {len(rows)} rows", file=result)
