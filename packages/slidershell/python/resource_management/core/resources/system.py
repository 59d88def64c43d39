"""Execute, ExecuteScript, File, Directory and Link. Owners and users are ignored: a container has one user."""

import os
import shutil
import tempfile
import time

from resource_management.core import process, shell
from resource_management.core.base import Resource
from resource_management.core.configuration import UnknownConfiguration
from resource_management.core.exceptions import ExecuteTimeoutException, Fail
from resource_management.core.logger import Logger

__all__ = ["Directory", "Execute", "ExecuteScript", "File", "Link"]


class Execute(Resource):
    """A command line, or a tuple of words. try_sleep, timeout and poll_after in seconds.

    A timeout kills all that the command started, and then fails, or runs on_timeout where there is one. Not waited
    for, a command stays in the background: pid_file gets the shell's pid, which is the command's own where bash
    executes it in its place, and within poll_after it may not end with another code than 0.
    """

    arguments = {
        "command": None, "creates": None, "cwd": None, "environment": None, "user": None, "group": None,
        "returns": 0, "tries": 1, "try_sleep": 0, "path": [], "logoutput": False, "timeout": None,
        "on_timeout": None, "wait_for_finish": True, "pid_file": None, "poll_after": None,
    }
    switches = ("logoutput", "wait_for_finish")
    default_action = "run"

    def action_run(self):
        if self.creates and os.path.exists(self.creates):
            return
        for ignored in ("user", "group"):
            if getattr(self, ignored) is not None:
                Logger.debug("{}: {} is ignored".format(self, ignored))
        tries = max(1, int(self.tries))
        for left in reversed(range(tries)):
            try:
                return self._once()
            except ExecuteTimeoutException as err:
                self._timed_out(err)
            except Fail as err:
                if not left:
                    raise
                Logger.info("again in {} s: {}".format(self.try_sleep, err))
                time.sleep(self.try_sleep)

    def _once(self):
        code, _ = shell.call(
            self._line(), logoutput=self.logoutput, cwd=self.cwd, env=self.environment, timeout=self.timeout,
            wait_for_finish=self.wait_for_finish, pid_file=self.pid_file, poll_after=self.poll_after, path=self._path())
        good = self.returns if isinstance(self.returns, (list, tuple)) else [self.returns]
        if code is not None and code not in good:
            raise shell.ended(self._line(), code, self.cwd)

    def _timed_out(self, err):
        if not self.on_timeout:
            raise Fail(str(err)) from None
        Logger.info("{}; now {!r}".format(err, self.on_timeout))
        shell.checked_call(self.on_timeout)

    def _line(self):
        return self.name if self.command is None else self.command

    def _path(self):
        return self.path if isinstance(self.path, (list, tuple)) else str(self.path).split(os.pathsep)


class ExecuteScript(Resource):
    """A text that an interpreter runs. Its exit code is logged and fails nothing, as in Slider."""

    arguments = {
        "code": None, "cwd": None, "environment": None, "interpreter": "/bin/bash", "user": None, "group": None}
    default_action = "run"

    def action_run(self):
        if self.code is None:
            raise Fail("{}: the argument code is missing".format(self))
        with tempfile.NamedTemporaryFile("w", prefix="script-", encoding="utf-8") as file:
            file.write(self.code)
            file.flush()
            code, _ = shell.call([self.interpreter, file.name], cwd=self.cwd, env=self.environment)
        if code:
            Logger.warning("{}".format(shell.ended(str(self), code)))


class File(Resource):
    """A file with the content of a string, a template or a callable; without content it is only made, if missing.

    replace=False leaves an existing one as it is; backup=True keeps a copy of what is replaced.
    """

    arguments = {
        "path": None, "backup": False, "mode": None, "owner": None, "group": None, "content": None, "replace": True,
        "encoding": "utf-8",
    }

    def action_create(self):
        path = self.path or self.name
        if os.path.isdir(path):
            raise Fail("{}: it is a folder".format(self))
        want_parent(self, path)
        content = self._content()
        if self._differs(path, content):
            Logger.info("writing {}".format(self))
            if os.path.exists(path) and self.backup:
                self.env.backup_file(path)
            write(path, content or b"")
        set_mode(path, self.mode)

    def action_delete(self):
        path = self.path or self.name
        if os.path.isdir(path):
            raise Fail("{}: it is a folder".format(self))
        if os.path.lexists(path):
            Logger.info("deleting {}".format(self))
            os.unlink(path)

    def _content(self):
        content = self.content
        if isinstance(content, UnknownConfiguration):
            content.fail()
        if callable(content):
            content = content()
        if content is None or isinstance(content, bytes):
            return content
        if isinstance(content, str):
            return content.encode(self.encoding)
        raise Fail("{}: content is {}, want text, a template or a callable".format(self, type(content).__name__))

    def _differs(self, path, content):
        if not os.path.exists(path):
            return True
        if not self.replace or content is None:
            return False
        with open(path, "rb") as file:
            return file.read() != content


class Directory(Resource):
    """A folder; recursive makes its parents too. content names a folder whose files and folders are copied into it."""

    arguments = {"path": None, "mode": None, "owner": None, "group": None, "content": None, "recursive": False}
    switches = ("recursive",)

    def action_create(self):
        path = self.path or self.name
        if not os.path.isdir(path):
            if os.path.lexists(path):
                raise Fail("{}: there is a file of that name".format(self))
            Logger.info("making {}".format(self))
            if self.recursive:
                os.makedirs(path, 0o755)
            else:
                want_parent(self, path)
                os.mkdir(path, 0o755)
        set_mode(path, self.mode)
        if self.content and os.path.isdir(self.content):
            Logger.info("copying {} to {}".format(self.content, path))
            copy_tree(self.content, path)

    def action_delete(self):
        path = self.path or self.name
        if os.path.islink(path):
            os.unlink(path)
        elif os.path.isdir(path):
            Logger.info("deleting {}".format(self))
            shutil.rmtree(path)
        elif os.path.lexists(path):
            raise Fail("{}: it is no folder".format(self))


class Link(Resource):
    """A symbolic link to `to`, in place of another one; hard makes another name of a file. What is no link is not
    replaced.
    """

    arguments = {"path": None, "to": None, "hard": False}
    switches = ("hard",)

    def action_create(self):
        path, to = self.path or self.name, self.to
        if to is None:
            raise Fail("{}: the argument to is missing".format(self))
        if os.path.lexists(path):
            if os.path.realpath(path) == to or self.hard and os.path.exists(to) and os.path.samefile(path, to):
                return
            if not os.path.islink(path):
                raise Fail("{}: a file or a folder has that name".format(self))
            Logger.info("replacing {}, which led to {}".format(self, os.readlink(path)))
            os.unlink(path)
        if self.hard and not os.path.isfile(to):
            raise Fail("{}: {} is no file".format(self, to))
        if not os.path.exists(to):
            Logger.warning("{}: {} does not exist".format(self, to))
        Logger.info("making {} to {}".format(self, to))
        (os.link if self.hard else os.symlink)(to, path)

    def action_delete(self):
        path = self.path or self.name
        if os.path.lexists(path):
            Logger.info("deleting {}".format(self))
            os.unlink(path)


def copy_tree(source, target):
    """Copies the content of a folder into another that may exist, as often as one likes. Links to files are followed,
    links to folders are not, for they may go round; what leads nowhere is left out."""
    for entry in os.scandir(source):
        into = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            os.makedirs(into, exist_ok=True)
            copy_tree(entry.path, into)
        elif entry.is_file():
            shutil.copy2(entry.path, into)


def want_parent(resource, path):
    parent = os.path.dirname(path) or "."
    if not os.path.isdir(parent):
        raise Fail("{}: the folder {} is missing".format(resource, parent))


def write(path, content):
    """Replaces a file whole, so that whoever reads it never sees half; a link keeps pointing where it did."""
    path = os.path.realpath(path)
    new = "{}.{}.new".format(path, os.getpid())
    try:
        with open(new, "wb") as file:
            if os.path.exists(path):
                os.fchmod(file.fileno(), os.stat(path).st_mode & 0o7777)
            file.write(content)
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise


def set_mode(path, mode):
    """mode: a number, or octal digits; None and 0 leave it as it is."""
    if not mode:
        return
    if isinstance(mode, str):
        mode = int(mode, 8)
    if os.stat(path).st_mode & 0o7777 != mode:
        os.chmod(path, mode)
