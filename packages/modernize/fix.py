"""2to3 on sources that come and go as JSON: nothing of the package is imported or written here.

stdin: [{"name", "source" (base64)}…]; stdout: [{"name", "source" (base64), "diff", "error", "line" of the
error or 0}…], one each, in order.
2to3 is the standard library's lib2to3, else its fork fissix. Exit code 3: this Python has neither.
"""

import ast
import base64
import difflib
import io
import json
import sys
import tokenize
import warnings

warnings.simplefilter("ignore")
try:
    from lib2to3 import refactor
except ImportError:
    try:
        from fissix import refactor
    except ImportError:
        sys.exit(3)

FIXERS = refactor.__name__.partition(".")[0] + ".fixes"

# A script is run as a file: its folder is on the path, and `from . import` would not work.
SKIP = {FIXERS + ".fix_import"}

# What 2to3 changes and no program for Python 3 says. The other fixers change good Python 3 as well.
ATTRIBUTES = DICT_METHODS | {"viewitems", "viewkeys", "viewvalues", "getcwdu"}
MODULES = {
    "urllib2", "urlparse", "robotparser", "httplib", "cookielib", "Cookie", "BaseHTTPServer", "SimpleHTTPServer",
    "CGIHTTPServer", "HTMLParser", "SocketServer", "xmlrpclib", "ConfigParser", "Queue", "StringIO", "cStringIO",
    "cPickle", "commands", "thread", "dummy_thread", "__builtin__", "copy_reg", "Tkinter", "htmlentitydefs",
}
URLLIB = {"urlencode", "quote", "quote_plus", "unquote", "unquote_plus", "urlopen", "urlretrieve"}


def python3(text):
    """The syntax tree, or None where Python 3 refuses the text."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def is_python2(node, own):
    if isinstance(node, ast.Name):
        return node.id in BUILTINS - own
    if isinstance(node, ast.Attribute):
        return node.attr in ATTRIBUTES or (
            node.attr in URLLIB and isinstance(node.value, ast.Name) and node.value.id == "urllib")
    if isinstance(node, ast.Import):
        return any(alias.name in MODULES for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module in MODULES or (
            node.module == "urllib" and any(alias.name in URLLIB for alias in node.names)))
    # print >>file, "x" parses, as a shift of the function
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift) and isinstance(node.left, ast.Name)
            and node.left.id == "print")


def fixed(name, text):
    """The text as 2to3 would have it."""
    tree = python3(text)
    if tree is not None:
        own = own_names(tree)
        if not any(is_python2(node, own) for node in ast.walk(tree)):
            return text
    shifts = tree is not None and any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift) and isinstance(node.left, ast.Name)
        and node.left.id == "print" for node in ast.walk(tree))
    fixers = [one for one in refactor.get_fixers_from_package(FIXERS) if one not in SKIP]
    # print(a, b) is a function's call to Python 3 and prints a pair in Python 2: what parses is taken by its word
    options = {"print_function": tree is not None and not shifts}
    tool = refactor.RefactoringTool(fixers, options)
    ends = "" if text.endswith("\n") else "\n"  # its grammar wants a last newline
    changed = str(tool.refactor_string(text + ends, name))
    return changed[:-1] if ends else changed


def one(name, source):
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    text = source.decode(encoding)
    new = fixed(name, text)
    diff = difflib.unified_diff(
        text.splitlines(True), new.splitlines(True), "a/" + name, "b/" + name)
    lines = (line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in diff)
    return new.encode(encoding), "".join(lines)


def why_not(err):
    """What keeps 2to3 from reading a source, and the line; 0: none that is known."""
    kind = type(err).__name__
    if kind == "ParseError" and err.context:  # lib2to3.pgen2.parse: (what stands before it, (line, column))
        return "does not parse as Python 2 or 3", err.context[1][0]
    if kind == "TokenError" and len(err.args) == 2:  # lib2to3.pgen2.tokenize: what, (line, column)
        return "does not parse as Python 2 or 3: " + err.args[0], err.args[1][0]
    if isinstance(err, SyntaxError) and err.lineno:
        return "does not parse as Python 2 or 3: " + err.msg, err.lineno
    return "{}: {}".format(kind, " ".join(str(err).split())), 0


def main():
    answers = []
    for file in json.load(sys.stdin):
        answer = {"name": file["name"], "source": "", "diff": "", "error": "", "line": 0}
        try:
            source, answer["diff"] = one(file["name"], base64.b64decode(file["source"]))
            answer["source"] = base64.b64encode(source).decode("ascii")
        except Exception as err:  # one file that cannot be read does not hide the others
            answer["error"], answer["line"] = why_not(err)
        answers.append(answer)
    json.dump(answers, sys.stdout)


main()
