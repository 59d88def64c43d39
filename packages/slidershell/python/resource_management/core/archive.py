"""Unpacks archives into a folder, and nothing outside of it."""

import os
import tarfile
import time
import zipfile

from resource_management.core.exceptions import Fail, refusal


def unpack(source, target):
    """By unzip if the name ends with zip, else by tar, which knows a compression by the content."""
    try:
        if source.lower().endswith("zip"):
            unzip(source, target)
        else:
            untar(source, target)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as err:
        raise Fail("package {}: {}".format(source, refusal(err, source) or err)) from err


def unzip(source, target):
    """Modes and times are the archive's; the times are read as this host's local ones."""
    folders = []
    with zipfile.ZipFile(source) as archive:
        for one in archive.infolist():
            if not one.is_dir():
                make_way(place_in(target, one.filename))
            path = archive.extract(one, target)  # takes `..` and the first / out of names
            mode, when = one.external_attr >> 16 & 0o777, time.mktime((*one.date_time, 0, 0, -1))
            if not one.is_dir():
                finish(path, mode, when)
            else:
                folders.append((path, mode and mode | ENTERED, when))
    finish_folders(folders)


def untar(source, target):
    """Members and links stay below target; devices and the like are refused, set-id bits are dropped. The umask
    applies, as where an ordinary user runs tar.
    """
    root, allowed, folders = os.path.realpath(target), 0o777 & ~umask(), []
    with tarfile.open(source) as archive:
        for member in archive:
            path = os.path.join(root, member.name)
            within(source, root, member.name, path)
            if member.issym():
                within(source, root, member.name, os.path.join(os.path.dirname(path), member.linkname))
            elif member.islnk():
                within(source, root, member.name, os.path.join(root, member.linkname))
            elif not (member.isreg() or member.isdir()):
                raise Fail("package {}: {}: neither file, folder nor link".format(source, member.name))
            member.mode &= allowed
            if not member.isdir():
                make_way(path)
            else:
                member.mode |= ENTERED
                if os.path.realpath(path) != root:
                    folders.append((path, member.mode, member.mtime))
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
            archive.extract(member, root, **NO_FILTER)
    finish_folders(folders)


# The owner of a folder may always write into it: else neither a second INSTALL nor the agent could remove it.
ENTERED = 0o700

# Newer Pythons ask which filter is meant; the checks are those of untar.
NO_FILTER = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}


def within(source, root, name, path):
    path = os.path.realpath(path)
    if path != root and not path.startswith(root + os.sep):
        raise Fail("package {}: {} leads out of the package".format(source, name))


def place_in(target, name):
    """Where zipfile puts a member: without the first / and without `..`."""
    return os.path.join(target, *(part for part in name.split("/") if part not in ("", ".", "..")))


def make_way(path):
    """A file is replaced, not written into: it may be read-only, or a link."""
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)


def finish_folders(folders):
    """The times of folders come last: each file that a folder gets changes them."""
    for path, mode, when in folders:
        finish(path, mode, when)


def finish(path, mode, when):
    os.utime(path, (when, when))
    if mode:
        os.chmod(path, mode)


def umask():
    """The umask of this process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
