"""Installs the packages that a metainfo lists: archives and folders of the app package."""

import json
import os
import shutil

from resource_management.core.archive import unpack
from resource_management.core.exceptions import Fail
from resource_management.core.logger import Logger


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
            copy_folder(source, target)
        elif kind in ("tarball", "zip"):
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


def copy_folder(source, target):
    """Links within the folder stay links. In the place of one that leads out of it comes what it leads to."""
    if not os.path.isdir(source):
        raise Fail("package {}: no such folder".format(source))
    shutil.copytree(source, target, symlinks=True)
    root = os.path.realpath(source) + os.sep
    for parent, folders, files in os.walk(source):
        for link in (os.path.join(parent, name) for name in folders + files):
            real = os.path.realpath(link)
            if not os.path.islink(link) or not os.path.exists(real) or (real + os.sep).startswith(root):
                continue
            place = os.path.join(target, os.path.relpath(link, source))
            os.unlink(place)
            if os.path.isdir(real):
                shutil.copytree(real, place)
            else:
                shutil.copy2(real, place)
