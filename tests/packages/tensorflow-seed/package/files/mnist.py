"""Stands in for a user's TensorFlow script: tells what it was given, needs no TensorFlow.

Prints its arguments as one JSON list. As ps it then serves until it is told to stop, as a worker it ends.
"""

import json
import signal
import sys

print(json.dumps(sys.argv[1:]), flush=True)
if "--job_name=ps" in sys.argv:
    signal.pause()
