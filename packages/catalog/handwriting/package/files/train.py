"""Learns handwritten digits with asynchronous parameter servers; see README.md.

Every process of the cluster runs this program; TF_CONFIG tells each its role.
Python's standard library is all it needs.
"""

import argparse
import os
import signal
import sys
import threading

# The package folder is shared and its content is what was verified: leave nothing in it.
sys.dont_write_bytecode = True
# Not there by itself when PYTHONSAFEPATH is set.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cluster as clusters  # noqa: E402
import server  # noqa: E402
import servers  # noqa: E402
import source  # noqa: E402
import worker  # noqa: E402
from say import note, say  # noqa: E402


class Terminated(BaseException):
    """A signal asks this process to end."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def main():
    options = parse(sys.argv[1:])
    try:
        me = clusters.from_environment()
        if me.role == clusters.PS:
            return serve(me, options)
        return work(me, options)
    except (clusters.ClusterError, servers.Gone, worker.Unsaved, source.Unread, ValueError, OSError) as err:
        note("train.py: {}".format(err))
        return 1


def serve(me, options):
    """A server has done what it was asked for when it is told to stop: exit 0."""
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    server.serve(me, options, stopped)
    return 0


def work(me, options):
    """A worker that is told to stop has not: it ends by that signal."""
    one = worker.Worker(me, options)

    def terminate(number, _):
        raise Terminated(number)

    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, terminate)
        one.run()
        return 0
    except Terminated as told:
        say("stopped at step {}".format(one.step))
        signal.signal(told.number, signal.SIG_DFL)
        os.kill(os.getpid(), told.number)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=positive, default=1500, help="updates of the parameters in all")
    parser.add_argument("--pace", type=seconds, default=0.0,
                        help="seconds that each step takes at least, all workers together")
    parser.add_argument("--checkpoint-every", type=positive, default=50, metavar="STEPS")
    parser.add_argument("--checkpoint-dir", default=os.environ.get("MUSTER_CHECKPOINT_DIR") or "checkpoint",
                        help="folder that all parameter servers see")
    parser.add_argument("--patience", type=seconds, default=120.0,
                        help="seconds that a worker waits for a parameter server to come back")
    parser.add_argument("--data", default="", metavar="NAME",
                        help="a worker's images: a folder, a name among the inputs of INPUT_FILE_LIST, or - for stdin; "
                             "else its share of the package's own")
    parser.add_argument("--reader", default="hdfs dfs -cat", metavar="COMMAND",
                        help="writes listed files of other machines on stdout")
    parser.add_argument("--model", default="", metavar="FOLDER",
                        help="where a worker leaves its history and report, and worker 0 what was learnt; else nothing")
    parser.add_argument("--seed", type=int, default=1, help="decides the parameters before the first step")
    return parser.parse_args(arguments)


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("got {}, want at least 1".format(text))
    return value


def seconds(text):
    value = float(text)
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError("got {}, want seconds".format(text))
    return value


if __name__ == "__main__":
    sys.exit(main())
