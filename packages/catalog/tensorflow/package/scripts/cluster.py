"""The ClusterSpec: who is in the cluster, and which of them this instance is.

The agent, which has waited for everybody, tells it by TF_CONFIG and by the roster. Where neither is there it is asked
for as scripts for Slider do: the exports of all components, until there are as many as instances.
"""

import collections
import http.client
import json
import time
import urllib.error
import urllib.request

from resource_management import Fail

# ps and workers: lists of host:port. A chief is worker 0 to programs that know no chief. task: the place in the job.
Cluster = collections.namedtuple("Cluster", "ps workers job task")

CHIEFS = ("chief", "chiefworker", "master")
COMPONENTS = ("ps",) + CHIEFS + ("worker",)  # in the order in which workers are counted
EXPORT = "host_port"
PAUSE = 1  # seconds between two looks: an answer is true for as long
ANSWER = 10  # seconds that one answer may take


def find(environ, params, seconds):
    """By TF_CONFIG, else by the roster, else by the exports, for which everybody is waited for so many seconds."""
    if given(environ, "TF_CONFIG"):
        return from_tf_config(given(environ, "TF_CONFIG"))
    if environ.get("MUSTER_ROSTER_FILE"):
        with open(environ["MUSTER_ROSTER_FILE"], encoding="utf-8") as file:
            return from_roster(json.load(file), params.component, int(environ["MUSTER_INDEX"]))
    if environ.get("MUSTER_SLIDER_URL"):
        me = Me(params.component, "{}:{}".format(bracketed(params.hostname), params.port), params.container_id)
        return from_exports(environ["MUSTER_SLIDER_URL"], me, seconds)
    raise Fail("no cluster: none of TF_CONFIG, MUSTER_ROSTER_FILE and MUSTER_SLIDER_URL is set")


def given(environ, name):
    """A variable; the agent puts one that is too long into a file."""
    if name + "_FILE" in environ:
        with open(environ[name + "_FILE"], encoding="utf-8") as file:
            return file.read()
    return environ.get(name, "")


def from_tf_config(text):
    """text: TensorFlow's {"cluster": {JOB: [HOST:PORT, …]}, "task": {"type": JOB, "index": N}}."""
    try:
        config = json.loads(text)
        jobs, job, index = config["cluster"], config["task"]["type"], int(config["task"]["index"])
        chiefs = jobs.get("chief", [])
        workers = chiefs + jobs.get("worker", [])
    except (ValueError, KeyError, TypeError) as err:
        raise Fail("TF_CONFIG {}: {!r}".format(text, err)) from err
    if job == "worker":
        index += len(chiefs)
    return Cluster(jobs.get("ps", []), workers, "worker" if job == "chief" else job, index)


def from_roster(roster, component, index):
    """roster: the agent's document of all members, by rank."""
    dialled = [row for row in roster["rows"] if has_port(row["addr"]) or row["role"] == "evaluator"]
    jobs = {role: [row for row in dialled if row["role"] == role] for role in ("ps", "chief", "worker", "evaluator")}
    jobs["worker"] = jobs.pop("chief") + jobs["worker"]
    for job, rows in jobs.items():
        for task, row in enumerate(rows):
            if (row["c"], row["i"]) == (component, index):
                return Cluster(addresses(jobs["ps"]), addresses(jobs["worker"]), job, task)
    raise Fail("{}-{} is no member of the roster with an address".format(component, index))


def addresses(rows):
    return [row["addr"] for row in rows]


def has_port(address):
    return address.rpartition(":")[2].isdigit() and bracketed(address.rpartition(":")[0]) == address.rpartition(":")[0]


def bracketed(host):
    """A host as it stands before a port."""
    return "[{}]".format(host) if ":" in host and not host.startswith("[") else host


Me = collections.namedtuple("Me", "component address container")


def from_exports(base, me, seconds, pause=PAUSE):
    """Polls Slider's REST at base, which is the URL before /ws/v1/slider, until all have exported their address."""
    rest = Rest(base)
    end = time.monotonic() + seconds
    while True:
        wanted, found = rest.wanted(), {}
        if wanted:
            found = {component: rest.exported(component) for component in wanted}
        cluster = assemble(wanted, found, me)
        if cluster:
            return cluster
        if time.monotonic() + pause > end:
            raise Fail("no cluster after {:g} s: {}".format(seconds, rest.error or missing(wanted, found, me)))
        time.sleep(pause)


class Rest:
    """What Slider's application master answers. Whatever goes wrong means that there is nothing yet."""

    def __init__(self, base):
        self.base = base.rstrip("/") + "/ws/v1/slider/"
        self.error = ""  # of the last question; empty: it was answered
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy leads to the agent

    def get(self, path):
        """The JSON of a path; None while there is none."""
        self.error = ""
        try:
            with self.opener.open(self.base + path, timeout=ANSWER) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as err:
            with err:
                self.error = "" if err.code == 404 else "{}: {} {}".format(self.base + path, err.code, err.reason)
        except (OSError, ValueError, http.client.HTTPException) as err:
            self.error = "{}: {}".format(self.base + path, err)
        return None

    def wanted(self):
        """How many instances each component of the cluster has, in the order of COMPONENTS; empty while unknown."""
        known = (self.get("application/live/resources") or {}).get("components", {})
        counts = {name: int(known.get(name, {}).get("yarn.component.instances", 0)) for name in COMPONENTS}
        return {name: count for name, count in counts.items() if count > 0}

    def exported(self, component):
        """The host_port entries of a component's group by the numbers of its instances, which begin at 1."""
        group = self.get("publisher/exports/" + component) or {}
        entries = (group.get("entries") or {}).get(EXPORT, [])
        return sorted(entries, key=lambda entry: int(entry["tag"]))


def assemble(wanted, found, me):
    """The cluster, or None while an export is missing."""
    if not wanted or any(len(found[name]) != count for name, count in wanted.items()):
        return None
    jobs = {"ps": found.get("ps", []), "worker": [entry for name in wanted if name != "ps" for entry in found[name]]}
    job = "ps" if me.component == "ps" else "worker"
    for task, entry in enumerate(jobs[job]):
        if me.address == entry["value"] or me.container and me.container == entry["containerId"]:
            return Cluster([e["value"] for e in jobs["ps"]], [e["value"] for e in jobs["worker"]], job, task)
    return None


def missing(wanted, found, me):
    """Whom the cluster lacks, for people."""
    if not wanted:
        return "nothing says how many instances of {} there are".format(", ".join(COMPONENTS))
    lacking = []
    for name, count in wanted.items():
        there = {int(entry["tag"]) for entry in found[name]}
        absent = ["{}-{}".format(name, tag - 1) for tag in range(1, count + 1) if tag not in there]
        if len(there) != count:
            lacking.append("{} has {} of {} exports {}{}".format(
                name, len(there), count, EXPORT, ", without " + ", ".join(absent) if absent else ""))
    return "; ".join(lacking) or "{} of this {} is not among the exports".format(me.address, me.component)


def arguments(cluster, checkpoint_dir, work_dir, data_dir):
    """What a training script for Slider is told."""
    told = [
        "--ps_hosts=" + ",".join(cluster.ps), "--worker_hosts=" + ",".join(cluster.workers),
        "--job_name=" + cluster.job, "--task_index={}".format(cluster.task),
        "--ckp_dir=" + checkpoint_dir, "--work_dir=" + work_dir,
    ]
    return told + ["--data_dir=" + data_dir] if data_dir else told
