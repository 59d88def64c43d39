"""What a process needs in its environment to reach HDFS by libhdfs: Hadoop's folders, its jars and a Java machine."""

import glob
import os
import shutil
import subprocess

SCHEMES = ("hdfs://", "viewfs://", "webhdfs://")
PATIENCE = 60  # seconds for `hadoop classpath`, which starts a Java machine
LIBJVM = ("lib/server/libjvm.so", "jre/lib/*/server/libjvm.so", "jre/lib/server/libjvm.so")


def named_by(*places):
    """Whether one of the places lies in HDFS."""
    return any(place.startswith(SCHEMES) for place in places)


def environment(conf, user, java_home, environ):
    """The variables to set, and what is not as it should be: empty when all is there.

    conf: the folder of Hadoop's configuration; empty: no HDFS is asked for. Where it is missing the one that the
    environment names is taken: an image may bring its own.
    """
    if not conf:
        return {}, ""
    if not os.path.isdir(conf):
        own = environ.get("HADOOP_CONF_DIR", "")
        if not os.path.isdir(own):
            return {}, "hadoop.conf {}: no such folder here; the process is told of no HDFS".format(conf)
        conf = own
    more = {"HADOOP_CONF_DIR": conf}
    if user:
        more["HADOOP_USER_NAME"] = user
    home, command = hadoop(environ)
    if not command:
        return more, "hadoop.conf {}: there is no hadoop command by HADOOP_HOME or PATH, so CLASSPATH is not set".format(conf)
    if java_home:
        more["JAVA_HOME"] = java_home
    try:
        jars = class_path(command, dict(environ, **more))
    except (OSError, subprocess.SubprocessError) as err:
        return more, "{} classpath --glob: {}; CLASSPATH is not set".format(command, reason(err))
    more["HADOOP_HDFS_HOME"] = environ.get("HADOOP_HDFS_HOME") or home
    more["CLASSPATH"] = joined(jars, environ.get("CLASSPATH"))
    libraries = native(home, java_home)
    more["LD_LIBRARY_PATH"] = joined(*libraries, environ.get("LD_LIBRARY_PATH"))
    if not any(os.path.exists(os.path.join(folder, "libjvm.so")) for folder in libraries):
        return more, "no libjvm.so below JAVA_HOME ({}), which libhdfs needs".format(java_home or "not set")
    return more, ""


def hadoop(environ):
    """Hadoop's folder and its command; both empty where there is none."""
    for home in filter(None, map(environ.get, ("HADOOP_HOME", "HADOOP_INSTALL", "HADOOP_HDFS_HOME"))):
        command = shutil.which("hadoop", path=os.path.join(home, "bin"))
        if command:
            return home, command
    command = shutil.which("hadoop", path=environ.get("PATH"))
    if not command:
        return "", ""
    return os.path.dirname(os.path.dirname(os.path.realpath(command))), command


def class_path(command, environ):
    """Every jar by its name: libhdfs does not expand what has a star in it."""
    run = subprocess.run([command, "classpath", "--glob"], env=environ, check=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    return run.stdout.strip()


def native(home, java_home):
    """The folders of libhdfs and of libjvm that exist."""
    found = [os.path.join(home, "lib", "native")]
    for pattern in LIBJVM:
        found += map(os.path.dirname, sorted(glob.glob(os.path.join(java_home, pattern)) if java_home else []))
    return list(filter(os.path.isdir, found))


def joined(*parts):
    return os.pathsep.join(filter(None, parts))


def reason(err):
    """In one line, with what the command itself has said."""
    said = (getattr(err, "stderr", None) or "").strip().splitlines()
    return "{}{}".format(err, ": " + said[-1] if said else "")
