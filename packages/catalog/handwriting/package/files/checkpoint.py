"""Checkpoints: one file ckpt-STEP.json each, there as a whole or not at all.

A file is written under a temporary name, flushed to the disk and renamed, so a reader
never meets half of one; its digest finds what a broken disk did to it later. Steps rise;
the newest KEEP files are kept.
"""

import base64
import hashlib
import json
import os
import re

import wire

KEEP = 3
_NAME = re.compile(r"ckpt-(\d+)\.json")
_TEMPORARY = re.compile(r"\.ckpt-\d+-\d+\.tmp")


class Checkpoint:
    """step: updates made so far; params: the whole vector; workers: who had joined."""

    def __init__(self, step, params, workers):
        self.step = step
        self.params = params
        self.workers = workers


def write(folder, checkpoint):
    """Adds the checkpoint to folder and drops what is older than the newest KEEP."""
    body = wire.pack(checkpoint.params)
    text = json.dumps({
        "version": 1,
        "step": checkpoint.step,
        "workers": sorted(checkpoint.workers),
        "sha256": hashlib.sha256(body).hexdigest(),
        "params": base64.b64encode(body).decode("ascii"),
    })
    temporary = os.path.join(folder, ".ckpt-{}-{}.tmp".format(checkpoint.step, os.getpid()))
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.join(folder, "ckpt-{}.json".format(checkpoint.step)))
    except BaseException:
        _remove(temporary)
        raise
    _sync_folder(folder)
    _prune(folder, checkpoint.step)


def sweep(folder):
    """Removes what a writer that was killed has left. Only the one writer may call it."""
    for name in os.listdir(folder):
        if _TEMPORARY.fullmatch(name):
            _remove(os.path.join(folder, name))


def newest(folder, size, warn):
    """The newest whole checkpoint of size parameters in folder, or None. Calls
    warn(text) for each file that is passed over."""
    for step in sorted(_steps(folder), reverse=True):
        path = os.path.join(folder, "ckpt-{}.json".format(step))
        try:
            return _read(path, size)
        except (OSError, ValueError, KeyError, TypeError, wire.Malformed) as err:
            warn("{} is passed over: {}".format(path, err))
    return None


def _read(path, size):
    with open(path, encoding="ascii") as file:
        fields = json.load(file)
    body = base64.b64decode(fields["params"])
    if hashlib.sha256(body).hexdigest() != fields["sha256"]:
        raise ValueError("its digest does not fit")
    return Checkpoint(int(fields["step"]), wire.unpack(body, size), set(fields["workers"]))


def _steps(folder):
    matches = (_NAME.fullmatch(name) for name in os.listdir(folder))
    return [int(match.group(1)) for match in matches if match]


def _prune(folder, newest_step):
    """Removes old checkpoints. Files of later steps stay: they are passed over as
    damaged by everybody, and worth keeping for whoever wants to know why."""
    for step in sorted((s for s in _steps(folder) if s <= newest_step), reverse=True)[KEEP:]:
        _remove(os.path.join(folder, "ckpt-{}.json".format(step)))


def _remove(path):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _sync_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
