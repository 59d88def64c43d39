"""Installs the packages that a metainfo lists: archives and folders of the app package."""

import json
import os
import shutil
import tarfile
import zipfile

from resource_management.core.exceptions import Fail
from resource_management.core.logger import Logger

ARCHIVES = {"tarball": (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz"), "zip": (".zip",)}


def install(package_list, basedir, target):
    """package_list is the JSON text of the command; each entry replaces what is at target by its content.

    A relative name lies below basedir.
    """
    for entry in json.loads(package_list):
        kind, name = str(entry["type"]).lower(), entry["name"]
        source = os.path.join(basedir, name)
        if kind == "folder":
            clear(target)
            Logger.info("copying {} to {}".format(source, target))
            shutil.copytree(source, target, symlinks=True)
        elif kind in ARCHIVES:
            clear(target)
            Logger.info("unpacking {} to {}".format(source, target))
            os.makedirs(target)
            unpack(source, target)
        else:
            raise Fail("package {}: type {!r} is not known; there are tarball, zip and folder. Packages of the operating"
                       " system belong into the image".format(name, kind))


def clear(target):
    if os.path.islink(target) or os.path.isfile(target):
        os.unlink(target)
    elif os.path.isdir(target):
        shutil.rmtree(target)


def unpack(source, target):
    """By the archive's name, as tar and unzip would."""
    try:
        if source.endswith(ARCHIVES["zip"]):
            unzip(source, target)
        elif source.endswith(ARCHIVES["tarball"]):
            untar(source, target)
        else:
            raise Fail("package {}: want a name that ends with one of {}".format(
                source, " ".join(ARCHIVES["tarball"] + ARCHIVES["zip"])))
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
