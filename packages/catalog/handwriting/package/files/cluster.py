"""Who is there and who am I: the cluster as TF_CONFIG tells it."""

import json
import os

PS = "ps"
WORKER = "worker"
# TensorFlow's names for the worker that leads; it counts as worker 0 here.
LEADERS = ("chief", "master")


class ClusterError(Exception):
    """TF_CONFIG is missing or describes no cluster this program can run in."""


class Cluster:
    """Addresses of everybody, and this process's own place among them.

    role is "ps" or "worker"; index counts from 0 within the role, a chief being
    worker 0 and the other workers following it.
    """

    def __init__(self, ps, workers, role, index):
        self.ps = ps
        self.workers = workers
        self.role = role
        self.index = index

    @property
    def address(self):
        """Own (host, port)."""
        return (self.ps if self.role == PS else self.workers)[self.index]


def from_environment(environ=None):
    """The cluster in TF_CONFIG, or in the file that TF_CONFIG_FILE names when
    the text was too long for a variable."""
    environ = os.environ if environ is None else environ
    text = environ.get("TF_CONFIG")
    if not text and environ.get("TF_CONFIG_FILE"):
        with open(environ["TF_CONFIG_FILE"], encoding="utf-8") as file:
            text = file.read()
    if not text:
        raise ClusterError("TF_CONFIG is not set: it must name the parameter servers and workers")
    return parse(text)


def parse(text):
    """The cluster in the text of a TF_CONFIG."""
    try:
        config = json.loads(text)
        groups, task = config["cluster"], config["task"]
        kind, index = str(task["type"]), int(task["index"])
        leaders = [address(a) for name in LEADERS for a in groups.get(name, [])]
        ps = [address(a) for a in groups.get(PS, [])]
        workers = leaders + [address(a) for a in groups.get(WORKER, [])]
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise ClusterError("TF_CONFIG is malformed: {!r}".format(err))
    if not ps or not workers:
        raise ClusterError("TF_CONFIG names {} ps and {} workers: at least one of each is needed".format(
            len(ps), len(workers)))
    if kind == WORKER:
        index += len(leaders)
    elif kind in LEADERS:
        kind = WORKER
    elif kind != PS:
        raise ClusterError("TF_CONFIG: task type {!r}: only ps, worker and chief take part".format(kind))
    count = len(ps if kind == PS else workers)
    if not 0 <= index < count:
        raise ClusterError("TF_CONFIG: task index {} of {} {}".format(index, count, kind))
    return Cluster(ps, workers, kind, index)


def address(text):
    """("host", port) of "host:port" or "[v6]:port"."""
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise ValueError("address {!r}: want host:port".format(text))
    return host.strip("[]"), int(port)
