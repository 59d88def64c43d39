"""Script: the base class of command scripts, and how a command reaches a method.

    SCRIPT COMMAND COMMAND.json BASEDIR STRUCTURED-OUT.json LOGLEVEL [WORKROOT]

The method is the command in lower case. It ends with exit code 0, or 1 with one line on stderr, which follows the
traceback of an exception that the library does not know. A command that the script has no method for leaves
{"muster": {"method": "absent"}} in the structured output, which tells that from a failure.
"""

import json
import logging
import os
import re
import sys
import traceback

from resource_management.core.configuration import ConfigDictionary
from resource_management.core.environment import Environment
from resource_management.core.exceptions import (
    ClientComponentHasNoStatusCommand, ComponentIsNotRunning, ExecuteTimeoutException, Fail)
from resource_management.core.logger import Logger
from resource_management.libraries.script import packages

__all__ = ["Script"]

USAGE = "usage: SCRIPT COMMAND COMMAND.json BASEDIR STRUCTURED-OUT.json LOGLEVEL [WORKROOT]"
ABSENT = {"muster": {"method": "absent"}}

# Names of Slider's library that this one lacks.
IMAGE = "muster's library changes nothing of the host; put what the script needs into the image"
PLATFORM = "muster's library does not have it; use Python's module platform"
LACKING = {
    **dict.fromkeys(("MonitorWebserver", "Mount", "Repository"), IMAGE),
    **dict.fromkeys(("OSCheck", "System"), PLATFORM),
}


class Script:
    """A package's script subclasses it, has methods install, configure, start, stop, status, and calls execute()."""

    config = None
    structuredOut = {}
    stroutfile = None

    def execute(self):
        """Runs the command of sys.argv and ends the process with 1 if it fails."""
        if len(sys.argv) < 6:
            print(USAGE, file=sys.stderr)
            sys.exit(1)
        command, command_file, basedir, structured_out, level = sys.argv[1:6]
        set_up_log(level)
        Script.stroutfile = structured_out
        try:
            Script.config = read_command(command_file)
            with Environment(basedir) as env:
                self._dispatch(command, env)
        except (Fail, ExecuteTimeoutException) as err:
            complain("{}: {}: {}{}".format(os.path.basename(sys.argv[0]), command, err, place_of(err, basedir)))
            sys.exit(1)

    def _dispatch(self, command, env):
        method = self._method(command.lower())
        if method:
            method(env)
            return
        self.put_structured_out(ABSENT)
        if command.upper() == "STATUS":
            raise ClientComponentHasNoStatusCommand()
        if command.upper() == "STOP":
            Logger.info("the script has no method stop")
            return
        raise Fail("the script has no method {!r}; it has {}".format(
            command.lower(), ", ".join(self._methods()) or "none"))

    def _method(self, name):
        return getattr(self, name) if name in self._methods() else None

    def _methods(self):
        """The commands that this script knows: its own methods, and those of Script that do something by themselves."""
        own = {name for kind in type(self).__mro__ if kind not in (Script, object) for name in vars(kind)}
        if {"start", "stop"} <= own:
            own.add("restart")
        own.add("install")
        return sorted(name for name in own if not name.startswith("_") and callable(getattr(self, name)))

    @staticmethod
    def get_config():
        """The command's JSON as ConfigDictionary."""
        if Script.config is None:
            raise Fail("no configuration: no command was read")
        return Script.config

    def put_structured_out(self, more):
        """Merges into what the agent reads beside the exit code. If the file cannot be written, the log says so."""
        Script.structuredOut.update(more)
        if not Script.stroutfile:
            return
        new = "{}.{}".format(Script.stroutfile, os.getpid())
        try:
            with open(new, "w", encoding="utf-8") as file:
                json.dump(Script.structuredOut, file)
            os.replace(new, Script.stroutfile)
        except OSError as err:
            Logger.error("structured output {}: {}".format(Script.stroutfile, err.strerror))

    def install(self, env):
        """Unless the script has its own: the packages that the metainfo lists."""
        self.install_packages(env)

    def install_packages(self, env):
        """Puts the tarballs, zips and folders of hostLevelParams.package_list into app_install_dir."""
        config = self.get_config()
        listed = dict.get(config, "hostLevelParams", {}).get("package_list") or "[]"
        if json.loads(listed):
            target = str(config["configurations"]["global"]["app_install_dir"])
            packages.install(listed, env.config.basedir, target)

    def restart(self, env):
        """Unless the script has its own: stop and start."""
        self.stop(env)
        self.start(env)

    def configure(self, env):
        """To be written by the script that calls it."""
        raise Fail("the script has no method 'configure'")

    @staticmethod
    def fail_with_error(message):
        """Ends the command with a line on stderr. It is no failure that a script could catch, as in Slider."""
        complain("{}: {}".format(": ".join([os.path.basename(sys.argv[0]), *sys.argv[1:2]]), message))
        sys.exit(1)


def complain(text):
    """Prints a failure as one line on stderr."""
    lines = Logger.get_protected_text(text).splitlines()
    print(" | ".join(line.strip() for line in lines if line.strip()), file=sys.stderr)


def report(kind, err, trace):
    """Prints an exception that nobody caught as Python does, then as one line with its place in the package."""
    sys.__excepthook__(kind, err, trace)
    if isinstance(err, Exception) and len(sys.argv) >= 6:
        text = traceback.format_exception_only(kind, err)[-1].strip()
        complain("{}: {}: {}{}{}".format(
            os.path.basename(sys.argv[0]), sys.argv[1], text, remedy(err), place_of(err, sys.argv[3])))


sys.excepthook = report  # here, because a script imports its modules before it calls execute()


def remedy(err):
    """What to do about a name of Slider's library that this one lacks."""
    name = re.match(r"name '(\w+)' is not defined", str(err)) if isinstance(err, NameError) else None
    return "; " + LACKING[name.group(1)] if name and name.group(1) in LACKING else ""


def place_of(err, basedir):
    """Where in the package's own files a failure comes from, as " (params.py, line 7)"; empty outside of them, and for
    the answers of STATUS, which are none.
    """
    if isinstance(err, (ComponentIsNotRunning, ClientComponentHasNoStatusCommand)):
        return ""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(err.__traceback__)]
    if isinstance(err, SyntaxError) and err.filename:  # the frames end with the import
        places.append((err.filename, err.lineno))
    for file, line in reversed(places):
        if os.path.realpath(file).startswith(os.path.realpath(basedir) + os.sep):
            return " ({}, line {})".format(os.path.basename(file), line)
    return ""


def read_command(path):
    """The command's JSON."""
    try:
        with open(path, encoding="utf-8") as file:
            command = json.load(file)
    except OSError as err:
        raise Fail("command {}: {}".format(path, err.strerror)) from err
    except ValueError as err:
        raise Fail("command {}: {}".format(path, err)) from err
    if not isinstance(command, dict):
        raise Fail("command {}: want an object".format(path))
    return ConfigDictionary(command)


def set_up_log(level):
    """Messages of the level and above go to stdout, errors to stderr too."""
    number = logging.getLevelName(level.upper())
    known = isinstance(number, int)
    form = logging.Formatter("%(asctime)s - %(message)s")
    for stream, least in ((sys.stdout, logging.DEBUG), (sys.stderr, logging.ERROR)):
        handler = logging.StreamHandler(stream)
        handler.setLevel(least)
        handler.setFormatter(form)
        Logger.logger.addHandler(handler)
    Logger.logger.setLevel(number if known else logging.INFO)
    Logger.logger.propagate = False
    if not known:
        Logger.warning("log level {!r} is not known; INFO instead".format(level))
