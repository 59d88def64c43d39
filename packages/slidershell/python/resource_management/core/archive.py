"""Unpacks archives into a folder, and nothing outside of it."""

import os
import tarfile
import zipfile

from resource_management.core.exceptions import Fail


def unpack(source, target):
    """By unzip if the name ends with zip, else by tar, which knows a compression by the content."""
    try:
        if source.lower().endswith("zip"):
            unzip(source, target)
        else:
            untar(source, target)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as err:
        raise Fail("package {}: {}".format(source, err)) from err


def unzip(source, target):
    with zipfile.ZipFile(source) as archive:
        for one in archive.infolist():
            path = archive.extract(one, target)  # takes `..` and the first / out of names
            mode = one.external_attr >> 16 & 0o777
            if mode and not one.is_dir():
                os.chmod(path, mode)


def untar(source, target):
    """Members and links stay below target; devices and the like are refused, set-id bits are dropped."""
    root = os.path.realpath(target)
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
            member.mode &= 0o777
            if member.isdir():
                member.mode |= 0o700  # what lies in it comes next
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
            archive.extract(member, root, **NO_FILTER)


# Newer Pythons ask which filter is meant; the checks are those of untar.
NO_FILTER = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}


def within(source, root, name, path):
    path = os.path.realpath(path)
    if path != root and not path.startswith(root + os.sep):
        raise Fail("package {}: {} leads out of the package".format(source, name))
