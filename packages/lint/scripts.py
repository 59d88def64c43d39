"""What can be said of Python sources by reading them: nothing of the package is imported or run here.

stdin: {"oldest": bool, "files": [{"name", "source" (base64)}…]}
stdout: {"python": "3.11", "files": [{"name", "refused", "oldest", "doubts", "class", "templates", "programs"}…]}, in order.

refused and oldest: {"line", "source", "failure"} or null; oldest is what Python 3.8 lacks, where it was asked for.
doubts: what may fail when it is run, in the same form, each with the words of Python 3's own failure.
class: {"name", "line", "methods", "whole"} of the class whose execute() is called, or null; whole: no base is unknown.
templates: [{"name", "line"}…] that Template() names. programs: the last part of the path of what strings begin with.
"""

import ast
import base64
import builtins
import json
import sys
import warnings

warnings.simplefilter("ignore")
MOST = 20  # doubts of a file

GONE = BUILTINS | {"file", "cmp"}


def fault(line, lines, failure):
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return {"line": line, "source": text[:200], "failure": failure[:300]}


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


def guarded(tree):
    """The nodes of try statements: who tries knows that it may fail."""
    return {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Try) for inner in ast.walk(node)}


def doubts(tree, lines, modules):
    own, tried, found = own_names(tree), guarded(tree), []
    for node in ast.walk(tree):
        failure = "" if id(node) in tried else doubt(node, own, modules)
        if failure:
            found.append(fault(node.lineno, lines, failure))
    return sorted(found, key=lambda one: one["line"])[:MOST]


def doubt(node, own, modules):
    imported = []
    if isinstance(node, ast.Import):
        imported = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        imported = [node.module or ""]
    for name in imported:
        if name.partition(".")[0] not in modules and name != "urllib":
            return "ModuleNotFoundError: No module named '{}'".format(name)
    if isinstance(node, ast.ImportFrom) and node.module == "urllib" and not node.level:
        return "ImportError: cannot import name '{}' from 'urllib'".format(node.names[0].name)
    if isinstance(node, ast.Name) and node.id in GONE - own and not hasattr(builtins, node.id):
        return "NameError: name '{}' is not defined".format(node.id)
    if isinstance(node, ast.Attribute) and node.attr in DICT_METHODS:
        return "AttributeError: 'dict' object has no attribute '{}'".format(node.attr)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift) and named(node.left) == "print":
        return "TypeError: unsupported operand type(s) for >>: 'builtin_function_or_method' and 'file'"
    return ""


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


def one(file, oldest, modules):
    source = base64.b64decode(file["source"])
    lines = source.decode("utf-8", "replace").splitlines()
    answer = {"name": file["name"], "refused": None, "oldest": None, "doubts": [], "class": None, "templates": [],
              "programs": []}
    tree, answer["refused"] = parse(source, lines)
    if tree is None:
        return answer
    if oldest:
        answer["oldest"] = parse(source, lines, feature_version=(3, 8))[1]
    answer["doubts"], answer["class"] = doubts(tree, lines, modules), run_class(tree)
    answer["templates"], answer["programs"] = templates(tree), programs(tree)
    return answer


def main():
    asked = json.load(sys.stdin)
    # a script may import its neighbours, whatever they are called
    modules = {part for file in asked["files"] for part in file["name"].replace(".py", "").split("/")}
    answers = [one(file, asked["oldest"], modules) for file in asked["files"]]
    json.dump({"python": "{}.{}".format(*sys.version_info), "files": answers}, sys.stdout)


main()
