"""What the program tells: results and milestones on stdout, everything else on stderr."""

import sys


def say(text):
    print(text, flush=True)


def note(text):
    print(text, file=sys.stderr, flush=True)
