"""Where a worker's images come from: the package's own file, a folder, a list of files, or stdin.

A worker that is given images by muster has its share of them; of the package's own it takes one.
"""

import gzip
import json
import os
import subprocess
import sys

import digits

STDIN = "-"
MAGIC = b"\x1f\x8b"  # of gzip


class Unread(Exception):
    """The images cannot be had."""


class Images:
    """training and held_back, lists of (pixels, digit); digest of the lines that they were read from."""

    def __init__(self, lines, where):
        self._lines = digits.Lines(where)
        self.training, self.held_back = self._lines.parse(lines)

    @property
    def count(self):
        return len(self.training) + len(self.held_back)

    @property
    def digest(self):
        """sha256 of the lines, in their order, each ended by a newline."""
        return self._lines.digest


def read(name, reader, index, count):
    """The images of worker index of count, for the --data that was given."""
    if not name:
        images = Images(_lines(_file(digits.FILE)), digits.FILE)
        images.training = digits.shard(images.training, index, count)
        return images
    if name == STDIN:
        return Images(sys.stdin.buffer, "stdin")
    if os.path.isdir(name):
        return Images(_lines(*[_file(path) for path in _files(name)]), name)
    listed = _listed()
    if listed is None:  # nothing was dealt out to this worker
        return Images([], name)
    if name not in listed:
        raise Unread("{}: there is no such folder, and no such name among the inputs {}".format(name, sorted(listed)))
    return Images(_lines(*_contents(listed[name], reader)), name)


def _listed():
    """{name: [path]} as muster tells it, by a variable or by a file where that would be too long; None without both."""
    text = os.environ.get("INPUT_FILE_LIST")
    if text is None:
        try:
            with open("inputFileList.txt", encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return None
    return json.loads(text)


def _files(folder):
    """Paths of all files below folder, in one order everywhere."""
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def _file(path):
    with open(path, "rb") as file:
        return file.read()


def _contents(paths, reader):
    """The bytes of each path. What is no file of this machine comes through the reader, a command that
    writes the files named to it on stdout one behind the other: packed and unpacked ones apart."""
    ours = [path for path in paths if "://" not in path]
    theirs = [path for path in paths if "://" in path]
    for path in ours:
        yield _file(path)
    for some in ([path for path in theirs if path.endswith(".gz")], [path for path in theirs if not path.endswith(".gz")]):
        if some:
            yield _piped(reader.split() + some)


def _piped(command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as err:
        raise Unread("{}: {}".format(" ".join(command[:3]), err))


def _lines(*contents):
    for content in contents:
        if content.startswith(MAGIC):
            content = gzip.decompress(content)
        for line in content.splitlines():
            yield line
