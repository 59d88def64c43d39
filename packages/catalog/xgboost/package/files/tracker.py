"""XGBoost's tracker: it tells the workers of one another, waits until all are done, and begins again for those that
are started again. DMLC_NUM_WORKER says for how many, --host and --port where."""

import argparse
import os
import sys
import time

try:
    from xgboost.core import XGBoostError
    from xgboost.tracker import RabitTracker
except ImportError as missing:
    sys.exit("tracker.py: {}: {}; name a Python that has XGBoost 2.1 or later by --set site.global.python=PATH".format(
        sys.executable, missing))

# Seconds. The kernel keeps the port of connections that have ended for a minute from whoever asks for it as XGBoost does.
PORT_IS_KEPT = 90
LOOK = 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    workers = int(os.environ["DMLC_NUM_WORKER"])
    while True:
        tracker = opened(workers, options.host, options.port)
        tracker.start()
        print("tracker for {} workers at {}:{}".format(workers, options.host, options.port), flush=True)
        try:
            tracker.wait_for()
        except XGBoostError as err:
            print("tracker: a worker was lost: {}".format(first_line(err)), file=sys.stderr, flush=True)
        tracker.free()


def opened(workers, host, port):
    end = time.monotonic() + PORT_IS_KEPT
    while True:
        try:
            return RabitTracker(workers, host, port, sortby="task")
        except XGBoostError as err:
            if "Address already in use" not in str(err) or time.monotonic() > end:
                raise
            time.sleep(LOOK)


def first_line(err):
    return str(err).strip().splitlines()[0]


if __name__ == "__main__":
    main()
