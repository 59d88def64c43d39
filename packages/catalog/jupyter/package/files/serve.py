"""Runs Jupyter at --ip and --port with the notebooks of --root for a --duration, behind a token that nobody else has.

The token is JUPYTER_TOKEN or JUPYTER_TOKEN_FILE where the job gives one (muster.secret.JUPYTER_TOKEN); otherwise it is drawn
here, into a file that its owner alone can read: a token on a command line, in a variable or in a log would be read by others.
"""

import argparse
import importlib.util
import os
import re
import secrets
import signal
import subprocess
import sys

# JupyterLab, Notebook 7 and the server alone, which has no pages but all of Jupyter's interface; Notebook 6 has none of them.
PROGRAMS = ("jupyterlab", "notebook", "jupyter_server")
TOKEN = "jupyter.token"


def main():
    options = parse()
    program = next((name for name in PROGRAMS if importlib.util.find_spec(name)), None)
    if program is None:
        sys.exit("serve.py: {} has none of {}; name a Python that has one by --set muster.python=PATH".format(
            sys.executable, ", ".join(PROGRAMS)))
    if not os.environ.get("JUPYTER_TOKEN") and not os.environ.get("JUPYTER_TOKEN_FILE"):
        os.environ["JUPYTER_TOKEN_FILE"] = drawn(os.path.join(os.environ["MUSTER_WORK_DIR"], TOKEN))
    home = os.path.join(os.environ["MUSTER_WORK_DIR"], "jupyter")
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):  # a container's home may not be written to
        os.environ.setdefault(name, home)
    os.makedirs(options.root, exist_ok=True)
    arguments = [sys.executable, "-m", program, "--no-browser", "--ServerApp.ip=" + options.ip,
                 "--ServerApp.port={}".format(options.port), "--ServerApp.port_retries=0", "--ServerApp.root_dir=" + options.root]
    if os.geteuid() == 0:  # whoever runs the agent as root and names no muster.user has decided so
        arguments.append("--ServerApp.allow_root=True")
    print("{} with the notebooks of {}".format(program, options.root), flush=True)
    sys.exit(run(arguments, options.duration))


def run(arguments, seconds):
    """The exit code: 0 when the time was up."""
    server = subprocess.Popen(arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: server.send_signal(number))
    try:
        return server.wait(seconds)
    except subprocess.TimeoutExpired:
        print("the time is up", flush=True)
        server.terminate()
        server.wait()
        return 0


def drawn(path):
    """The file of the token: the same after a restart."""
    if not os.path.exists(path):
        new = path + ".new"
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
        os.replace(new, path)
    print("the token is in {}; muster exec {}/{} -- cat {}".format(
        path, os.environ["MUSTER_APP_ID"], os.environ["MUSTER_INSTANCE"], TOKEN), flush=True)
    return path


def duration(text):
    """Seconds of 90, 90s, 30m, 1.5h or 1d."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not match:
        raise argparse.ArgumentTypeError("{!r}: want a number and s, m, h or d".format(text))
    return float(match.group(1)) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match.group(2)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ip", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--duration", type=duration, required=True)
    parser.add_argument("--root", required=True, help="folder of notebooks; it is made where it is missing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
