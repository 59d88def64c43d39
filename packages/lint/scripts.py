"""What can be said of Python sources by reading them: nothing of the package is imported or run here.

stdin: {"oldest": bool, "hosts": bool, "programs": [folder…], "files": [{"name", "source" (base64)}…], "library": the
same of the library's sources}; hosts: it is such a Python as this one that will run the scripts.
stdout: {"python": "3.11", "files": [{"name", "refused", "oldest", "doubts", "more", "class", "unrun", "templates",
"programs", "reads"}…]}, in order.

refused: [{"line", "source", "failure", "write"}…], the lines that Python 3 cannot read: all of them where 2to3 knows
what to write and this Python has it, else the first. oldest: the same or null, what Python 3.8 lacks, where asked for.
doubts: what may fail when it is run, in the same form, each with the words of Python 3's own failure. write: what
stands for a method that dictionaries had in Python 2, and that the command's JSON still has. by_hand: 2to3 leaves it.
want and hint: what to say of names that the library, a later Python or every host lacks.
more: {"count", "line"} of the refused and doubts that were left out, and where they begin, or null.
class: {"name", "line", "methods", "whole"} of the class whose execute() is called, or null; whole: no base is unknown.
unrun: {"name", "line"} of the last class of commands in a file that runs none of them, or null.
templates: [{"name", "line"}…] that Template() names. programs: the last part of the path of what strings begin with.
reads: [{"path", "line"}…] of the command's JSON, such as ["configurations", "global", "x"], that must be there; not
those that the file tests for (in, get, has_key, is_empty, default), nor those in a try that catches their lack.
"""

import ast
import base64
import builtins
import difflib
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import site
import sys
import time
import tokenize
import warnings

warnings.simplefilter("ignore")
MOST = 20  # refused lines, and doubts, of a file
PATIENCE = time.monotonic() + 5  # until which 2to3 is asked

# The objects of a command's JSON, as Slider has it and as Ambari has it.
ROOTS = {"configurations", "hostLevelParams", "commandParams", "roleParams", "componentConfig", "clusterHostInfo"}

# What fixers of 2to3 change that no Python 3 can read.
SYNTAX = ["except", "exec", "ne", "numliterals", "paren", "print", "raise", "repr", "throw", "tuple_params"]

CODECS = {"base64", "bz2", "hex", "rot13", "rot_13", "string_escape", "unicode_internal", "uu", "zlib"}
VIEWS = {"keys": "dict_keys", "values": "dict_values", "items": "dict_items"}
TEXT = {"encoding", "errors", "text", "universal_newlines"}  # arguments that have a process give text
BY_CALL = {"execfile", "intern", "raw_input", "reduce", "reload", "xrange"}  # 2to3 knows them by their calls
LAZY = {"filter", "map", "zip"}
ANYTHING = {"Exception", "BaseException", "StandardError", ""}
UNSET = ANYTHING | {"Fail", "KeyError"}  # what a value that nobody sets may raise


def fault(line, lines, failure, write=""):
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return {"line": line, "source": text[:200], "failure": failure[:300], "write": write.strip()[:200]}


def parse(source, lines, **how):
    """The tree and None, or None and what Python says."""
    try:
        return ast.parse(source, **how), None
    except SyntaxError as err:
        return None, fault(err.lineno or 1, lines, "{}: {}".format(type(err).__name__, err.msg))
    except (ValueError, RecursionError, MemoryError) as err:
        return None, fault(1, lines, "{}: {}".format(type(err).__name__, err))


def named(node):
    """The last name of a, or a.b."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def repaired(name, source, lines):
    """The tree of a source of Python 2 once 2to3 has changed its syntax, with the lines that it had, and the lines that
    Python 3 cannot read; None where 2to3 is of no help. A tab is 8 blanks, as in Python 2.
    """
    refactor = fixers() if time.monotonic() < PATIENCE else None
    if refactor is None:
        return None, []
    try:
        text = source.decode(tokenize.detect_encoding(io.BytesIO(source).readline)[0])
        mixed = tabbed(refactored(refactor, text, name, SYNTAX)) if "\t" in text else None
        if mixed:
            text = re.sub(r"(?m)^[ \t]+", lambda blanks: blanks.group().expandtabs(8), text)
        given, lines = lines, text.splitlines()
        new = refactored(refactor, text, name, SYNTAX)
        tree = ast.parse(new)
    except Exception:  # of another kind for each thing that it does not understand
        return None, []
    new, found, back = new.splitlines(), [], {}
    if mixed:
        line = min(mixed.lineno, len(given))  # 2to3 seldom adds a line
        found.append(fault(line, given, "TabError: " + mixed.msg))
    for kind, a, b, c, d in difflib.SequenceMatcher(None, lines, new, autojunk=False).get_opcodes():
        back.update((c + i + 1, min(a + i, max(b - 1, 0)) + 1) for i in range(d - c))
        if kind == "equal":
            continue
        each = [(a + i, 1, c + i, 1) for i in range(b - a)] if b - a == d - c else [(a, b - a, c, d - c)]
        for old, count, at, length in each:
            if parse("\n".join(new[:at] + lines[old:old + count] + new[at + length:]) + "\n", lines)[1]:
                found.append(fault(old + 1, lines, "SyntaxError", "; ".join(map(str.strip, new[at:at + length]))))
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = back.get(node.lineno, node.lineno)
    return tree, found


def tabbed(text):
    """What Python 3 says of tabs and blanks before the lines of a text that it can read otherwise, or None."""
    try:
        ast.parse(text)
    except TabError as err:
        return err
    except (SyntaxError, ValueError):
        pass
    return None


def caught_by(node):
    """The names of what the handlers of a try catch."""
    return {named(one) for handler in node.handlers for one in (
        handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type])}


def guarded(tree, kind):
    """The nodes whose failure of this kind is reckoned with: in a try that names it, alone in one that takes anything,
    or where the version of Python is asked.
    """
    found = set()
    for node in ast.walk(tree):
        bodies = []
        if isinstance(node, ast.Try):
            caught = caught_by(node)
            if kind in caught or kind == "ImportError" and caught & (ANYTHING | {"ModuleNotFoundError"}):
                bodies = node.body + node.handlers
            elif caught & ANYTHING and len(node.body) == 1:
                bodies = node.body
        elif isinstance(node, (ast.If, ast.IfExp)) and any(
                named(one) in ("version_info", "version", "PY2", "PY3", "hexversion") for one in ast.walk(node.test)):
            bodies = [node]
        found.update(id(inner) for body in bodies for inner in ast.walk(body))
    return found


def lacks(module, name):
    """Tells whether this Python has no module.name."""
    try:
        return not hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


class Doubts:
    """What may fail in one file, in Python's own words."""

    def __init__(self, name, tree, neighbours, siblings, values):
        self.name, self.neighbours, self.siblings, self.values = name, neighbours, siblings, values
        self.own, self.modules = own_names(tree), imported(tree)
        self.called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        self.texts = any(word.arg in TEXT for node in ast.walk(tree) if isinstance(node, ast.Call)
                         for word in node.keywords)
        self.caught = {}  # id of a node → names that an except around it gives
        self.views = {}  # names → the type of what they are given
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and node.name and self.builtin(node.type):
                for inner in ast.walk(node):
                    self.caught.setdefault(id(inner), set()).add(node.name)
        self.views = self.given(tree)

    def given(self, tree):
        """Names that are given d.keys() or the like, and nothing else anywhere in the file."""
        given, stored = {}, []
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                given.setdefault(node.targets[0].id, []).append(self.lazy(node.value))
            if isinstance(node, ast.arg):
                stored.append(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored.append(node.id)
        return {name: kinds[0] for name, kinds in given.items() if all(kinds) and stored.count(name) == len(kinds)}

    @staticmethod
    def builtin(types):
        """Tells whether all that an except takes is Python's own: others may have a message."""
        each = types.elts if isinstance(types, ast.Tuple) else [types]
        return all(hasattr(builtins, named(one)) for one in each)

    def lazy(self, node):
        """The type of what is a list in Python 2 alone, else an empty text."""
        if not isinstance(node, ast.Call):
            return self.views.get(node.id, "") if isinstance(node, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
            return VIEWS.get(node.func.attr, "")
        return node.func.id if isinstance(node.func, ast.Name) and node.func.id in LAZY - self.own else ""

    def of(self, node):
        """Pairs of the failure's kind and its words."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self.module(alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from self.module(node.module)
            for alias in node.names:
                if alias.name in removed_members(node.module) and lacks(node.module, alias.name):
                    yield "ImportError", "cannot import name '{}' from '{}'".format(alias.name, node.module)
        elif isinstance(node, ast.Name) and node.id in BUILTINS and node.id not in self.own:
            if not hasattr(builtins, node.id):
                yield "NameError", "name '{}' is not defined".format(node.id)
        elif isinstance(node, ast.Attribute):
            yield from self.attribute(node)
        elif isinstance(node, ast.Call):
            yield from self.call(node)
        elif isinstance(node, ast.Subscript) and self.lazy(node.value):
            yield "TypeError", "'{}' object is not subscriptable".format(self.lazy(node.value))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift) and named(node.left) == "print":
            yield "TypeError", "unsupported operand type(s) for >>: 'builtin_function_or_method' and 'file'"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            kind = self.lazy(node.left) or self.lazy(node.right)
            if kind:
                yield "TypeError", "unsupported operand type(s) for +: '{}' and 'list'".format(kind)

    def left(self, node):
        """Tells whether 2to3 leaves a name because nothing calls it there."""
        of_module = isinstance(node, ast.Attribute) and member(node, self.modules) in ("itertools", "operator")
        return id(node) not in self.called and (of_module or isinstance(node, ast.Name) and node.id in BY_CALL)

    def module(self, name):
        if self.siblings.has(self.name, name):
            yield "ImportError", "No module named '{}': it is beside the script".format(name)
            return
        first = name.partition(".")[0]
        if first in MODULES and first not in self.neighbours and importlib.util.find_spec(first) is None:
            yield "ImportError", "No module named '{}'".format(first)

    def attribute(self, node):
        module = member(node, self.modules)
        if node.attr in DICT_METHODS and not self.values.path(node.value) and not self.values.root(node.value):
            yield "AttributeError", "'dict' object has no attribute '{}'".format(node.attr)
        elif node.attr in removed_members(module) and module not in self.neighbours and lacks(module, node.attr):
            yield "AttributeError", "module '{}' has no attribute '{}'".format(module, node.attr)
        elif node.attr == "message" and named(node.value) in self.caught.get(id(node), ()):
            yield "AttributeError", "'Exception' object has no attribute 'message'"
        elif node.attr == "sort" and self.lazy(node.value):
            yield "AttributeError", "'{}' object has no attribute 'sort'".format(self.lazy(node.value))

    @staticmethod
    def output(node):
        """Tells whether it is what a process has written: p.communicate()[0], or subprocess.check_output(…)."""
        if isinstance(node, ast.Subscript):
            return isinstance(node.value, ast.Call) and named(node.value.func) == "communicate"
        if not isinstance(node, ast.Call) or any(word.arg is None for word in node.keywords):
            return False
        return isinstance(node.func, ast.Attribute) and node.func.attr == "check_output" and (
            named(node.func.value) == "subprocess")

    def call(self, node):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        by = {word.arg for word in node.keywords}
        first = node.args[0] if node.args else None
        if method == "sort" and (isinstance(first, (ast.Name, ast.Attribute, ast.Lambda)) or "cmp" in by):
            yield "TypeError", "sort() takes no positional arguments"
        if named(node.func) == "sorted" and not method and (len(node.args) > 1 or "cmp" in by):
            yield "TypeError", "sorted expected 1 argument, got {}".format(len(node.args))
        if method in ("encode", "decode") and text_of(first) in CODECS and named(node.func.value) != "codecs":
            yield "LookupError", "'{}' is not a text encoding".format(first.value)
        if method in ("split", "strip", "rstrip", "lstrip", "replace") and text_of(first) is not None and (
                not self.texts and self.output(node.func.value)):
            yield "TypeError", "a bytes-like object is required, not 'str'"
        if named(node.func) == "len" and not method and first is not None and self.lazy(first) in LAZY:
            yield "TypeError", "object of type '{}' has no len()".format(self.lazy(first))


def removed_members(module):
    return {**CHANGED_MEMBERS.get(module, {}), **LEFT_MEMBERS.get(module, {})}


CHANGED_MEMBERS, LEFT_MEMBERS = REMOVED["changed"]["members"], REMOVED["left"]["members"]


def doubts(name, tree, lines, neighbours, siblings, values):
    all_of_it, found, guards = Doubts(name, tree, neighbours, siblings, values), {}, {}
    for node in ast.walk(tree):
        for kind, words in all_of_it.of(node):
            if kind not in guards:
                guards[kind] = guarded(tree, kind)
            if id(node) not in guards[kind]:
                failure, write = "{}: {}".format(kind, words), DICT_METHODS.get(getattr(node, "attr", ""), "")
                found.setdefault((node.lineno, failure), fault(node.lineno, lines, failure, write))
                if all_of_it.left(node):
                    found[node.lineno, failure]["by_hand"] = True
    return [found[key] for key in sorted(found)]


def run_class(tree):
    """The class C of C().execute(), with the methods of the classes of this file that it descends from."""
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    made = {}  # x = C()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made.update((named(target), named(node.value.func)) for target in node.targets)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "execute"):
            continue
        owner = node.func.value
        name = named(owner.func) if isinstance(owner, ast.Call) else made.get(named(owner), "")
        if name in classes:
            methods, whole = members(classes, name, set())
            return {"name": name, "line": classes[name].lineno, "methods": sorted(methods), "whole": whole}
    return None


def unrun_class(tree):
    """The last class of commands, in a file that surely runs none: it names execute nowhere, does nothing with such a
    class but derive from it and make one, and takes no names from modules unseen but the library's.
    """
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    ours = [node for node in classes.values() if descends(classes, node.name, set())]
    idle = {id(one) for node in ours for one in node.bases}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node.func) == "super":
            idle.update(map(id, node.args))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            idle.add(id(node.value.func))
    for node in ast.walk(tree):
        if "execute" in (named(node), text_of(node)) or named(node) in ("exec", "eval", "globals"):
            return None
        if isinstance(node, ast.Name) and id(node) not in idle and node.id in {one.name for one in ours}:
            return None
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and not (
                (node.module or "").startswith("resource_management")):
            return None
    return {"name": ours[-1].name, "line": ours[-1].lineno} if ours else None


def descends(classes, name, seen):
    """Tells whether a class is the library's Script, or one that descends from it within this file."""
    if name not in classes or name in seen:
        return name == "Script"
    seen.add(name)
    return not classes[name].decorator_list and any(
        descends(classes, named(base), seen) for base in classes[name].bases)


def members(classes, name, seen):
    """The names that a class has, and whether that is all."""
    if name in seen:
        return set(), True
    seen.add(name)
    node, found = classes[name], set()
    whole = not node.decorator_list and not node.keywords
    for one in node.body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(one.name)
        elif isinstance(one, ast.Assign):
            found.update(named(target) for target in one.targets)
        elif not isinstance(one, (ast.Expr, ast.Pass, ast.AnnAssign)):
            whole = False  # an if, or an import: more than can be read
    for base in node.bases:
        if named(base) in classes:
            more, all_of_it = members(classes, named(base), seen)
            found, whole = found | more, whole and all_of_it
        elif named(base) != "Script":
            whole = False
    return found, whole and "__getattr__" not in found


def texts(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def templates(tree):
    return [{"name": node.args[0].value, "line": node.lineno} for node in ast.walk(tree)
            if isinstance(node, ast.Call) and named(node.func) == "Template" and node.args
            and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)]


def programs(tree):
    """The files that Execute() or a process begins with, unless something here changes modes."""
    if any("chmod" in node.value for node in texts(tree)) or any(named(node) == "chmod" for node in ast.walk(tree)):
        return []
    written = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Call) and named(node.func) in ("File", "open")
               for inner in ast.walk(node)}
    return sorted({node.value.split()[0].rpartition("/")[2] for node in texts(tree)
                   if id(node) not in written and node.value.strip()})


def text_of(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def key_of(node):
    """The text of x["text"], else None."""
    if not isinstance(node, ast.Subscript):
        return None
    return text_of(node.slice.value if type(node.slice).__name__ == "Index" else node.slice)  # Index: Python 3.8's


def asks(node, *methods):
    """Tells whether the node is x.get("text", …), or a call of another of the methods."""
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
            and bool(node.args) and text_of(node.args[0]) is not None)


def tries(tree):
    """The nodes in try statements that catch what a value that nobody sets raises."""
    return {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Try) and caught_by(node) & UNSET
            for one in node.body for inner in ast.walk(one)}


class Values:
    """What a file reads of the command's JSON, whatever it calls that."""

    def __init__(self, tree):
        self.names = {}  # of variables that have the same value wherever they are assigned → its path
        self.given = {}  # of variables → the paths that they are given
        # config = Script.get_config()
        self.roots = {node.targets[0].id for node in ast.walk(tree) if isinstance(node, ast.Assign)
                      and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call)
                      and named(node.value.func) == "get_config"}
        for _ in range(3):  # a = config["configurations"]; b = a["global"]; c = b["x"]
            self.names = self.assigned(tree)
        self.asked = [path for node in ast.walk(tree) for path in self.tested(node)]

    def assigned(self, tree):
        self.given, count = {}, {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                count[node.id] = count.get(node.id, 0) + 1
            elif isinstance(node, ast.arg):
                count[node.arg] = sys.maxsize  # whatever a caller gives
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.given.setdefault(node.targets[0].id, []).append(self.path(node.value))
        return {name: paths[0] for name, paths in self.given.items()
                if paths[0] and count[name] == len(paths) == paths.count(paths[0])}

    def root(self, node):
        """Tells whether it is the command's whole configuration, which has the methods of Python 2's dictionaries."""
        return isinstance(node, ast.Name) and node.id in self.roots

    def path(self, node, gets=False):
        """The keys below the JSON's top, or None. gets: x.get("key", …) counts as x["key"]."""
        keys = []
        while len(keys) < 8:
            if isinstance(node, ast.Name) and node.id in self.names:
                return self.names[node.id] + keys
            asked = gets and asks(node, "get")
            key = node.args[0].value if asked else key_of(node)
            if key is None:
                return None
            keys.insert(0, key)
            if key in ROOTS:
                return keys
            node = node.func.value if asked else node.value
        return None

    def inside(self, node, key):
        """The path of a key that a node may have, or None."""
        path = self.path(node, True)
        return path + [key] if path else [key] if key in ROOTS else None

    def tested(self, node):
        """The paths of which a node asks whether they are there, or has a default for: each whole, no part of it."""
        if asks(node, "get", "has_key"):
            yield self.inside(node.func.value, node.args[0].value)
        elif isinstance(node, ast.Call) and named(node.func) == "default" and node.args and text_of(node.args[0]):
            name = node.args[0].value
            yield name.strip("/").split("/") if name.startswith("/") else ["configurations", "global", name]
        elif isinstance(node, ast.Call) and named(node.func) in ("is_empty", "isinstance"):
            for value in node.args:
                yield from self.given.get(getattr(value, "id", ""), [self.path(value)])
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)) and text_of(node.left):
            yield self.inside(node.comparators[0], node.left.value)

    def reads(self, tree):
        """The paths that must be there, but for those that the file tests for."""
        tried, found = tries(tree), {}
        for node in ast.walk(tree):
            path = self.path(node) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) else None
            if path and id(node) not in tried and path not in self.asked:
                found.setdefault(tuple(path), node.lineno)
                found[tuple(path)] = min(found[tuple(path)], node.lineno)
        return [{"path": path, "line": line} for path, line in sorted(found.items())]


def one(file, around):
    name, source = file["name"], file["source"]
    lines = source.decode("utf-8", "replace").splitlines()
    answer = {"name": name, "refused": [], "oldest": None, "doubts": [], "more": None, "class": None, "unrun": None,
              "templates": [], "programs": [], "reads": []}
    tree, refused = parse(source, lines)
    if refused:
        tree, found = repaired(name, source, lines)
        tabs = refused["failure"].startswith("TabError")
        again = [one for one in found if one["line"] == refused["line"] and one["failure"].startswith("TabError") == tabs]
        for one in again:
            refused["write"] = one["write"]
        answer["refused"] = [one for one in found if one not in again] + [refused]
        answer["refused"].sort(key=lambda one: one["line"])
    elif around.oldest:
        answer["oldest"] = parse(source, lines, feature_version=(3, 8))[1]
    if tree is not None:
        values = Values(tree)
        answer["doubts"] = doubts(name, tree, lines, around.neighbours, around.siblings, values)
        answer["doubts"] = sorted(answer["doubts"] + lacking(tree, lines, around), key=lambda one: one["line"])
        answer["class"] = run_class(tree)
        answer["unrun"] = unrun_class(tree)
        answer["templates"], answer["programs"] = templates(tree), programs(tree)
        answer["reads"] = values.reads(tree)
    rest = answer["refused"][MOST:] + answer["doubts"][MOST:]
    if rest:
        answer["more"] = {"count": len(rest), "line": min(one["line"] for one in rest)}
    answer["refused"], answer["doubts"] = answer["refused"][:MOST], answer["doubts"][:MOST]
    return answer


def sources(files):
    return [{"name": file["name"], "source": base64.b64decode(file["source"])} for file in files]


def main():
    asked = json.load(sys.stdin)
    files, asked["library"] = sources(asked["files"]), sources(asked["library"])
    around = Surroundings(files, asked, Siblings(files, asked["programs"]))
    answers = [one(file, around) for file in files]
    json.dump({"python": "{}.{}".format(*sys.version_info), "files": answers}, sys.stdout)


main()
