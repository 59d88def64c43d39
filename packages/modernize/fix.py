"""2to3 on sources that come and go as JSON: nothing of the package is imported or written here.

stdin: {"programs": [folder…], "files": [{"name", "source" (base64)}…]}; stdout: [{"name", "source" (base64), "diff",
"error", "line" of the error or 0}…], one for each file, in order.
Exit code 3: this Python has neither lib2to3 nor fissix.
"""

import ast
import base64
import difflib
import importlib
import io
import json
import sys
import tokenize
import warnings

warnings.simplefilter("ignore")
refactor = fixers()
if refactor is None:
    sys.exit(3)

PACKAGE = refactor.__name__.partition(".")[0]
RELATIVE = "import"  # the fixer of imports of siblings, which goes first
ALL = [one.rpartition(".fix_")[2] for one in refactor.get_fixers_from_package(PACKAGE + ".fixes")]

# In scripts these are text. 2to3 has bytes.
importlib.import_module(PACKAGE + ".fixes.fix_types")._TYPE_MAPPING["StringType"] = "str"

# What 2to3 changes and no program for Python 3 says. The other fixers change good Python 3 as well.
CHANGED = REMOVED["changed"]


def python3(text):
    """The syntax tree, or None where Python 3 refuses the text."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def is_python2(node, own, modules):
    if isinstance(node, ast.Name):
        return node.id in CHANGED["builtins"] and node.id not in own
    if isinstance(node, ast.Attribute):
        return node.attr in CHANGED["methods"] or node.attr in CHANGED["members"].get(member(node, modules), {})
    if isinstance(node, ast.Import):
        return any(alias.name in CHANGED["modules"] for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module in CHANGED["modules"] or any(
            alias.name in CHANGED["members"].get(node.module, {}) for alias in node.names))
    return shifts(node)


def shifts(node):
    """print >>file, "x" parses in Python 3, as a shift of the function."""
    return (isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift) and isinstance(node.left, ast.Name)
            and node.left.id == "print")


def relative(fixer, siblings):
    """Has 2to3's fixer of imports ask what is in the package, and part `import os, sibling` as well."""
    util = importlib.import_module(PACKAGE + ".fixer_util")
    given = fixer.transform

    def near(self, module):
        return siblings.has(self.filename, module)

    def transform(self, node, results):
        imp = results["imp"]
        if node.type == util.syms.import_from or self.skip:
            return given(self, node, results)
        several = imp.type == util.syms.dotted_as_names
        modules = [str(one).strip() for one in (imp.children[::2] if several else [imp])]
        # from . import a.b is no Python
        ours = [one for one in modules if "." not in one and near(self, one.split()[0])]
        rest = [one for one in modules if one not in ours]
        lines = ["from . import " + ", ".join(ours)] + (["import " + ", ".join(rest)] if rest else [])
        return util.Name("; ".join(lines), prefix=node.prefix) if ours else None

    fixer.probably_a_local_import, fixer.transform = near, transform


def fixed(name, text, siblings):
    """The text as 2to3 would have it."""
    tree, chosen = python3(text), ALL
    if tree is not None:
        own, modules = own_names(tree), imported(tree)
        if not any(is_python2(node, own, modules) for node in ast.walk(tree)):
            chosen = [RELATIVE]
    # print(a, b) is a function's call to Python 3 and prints a pair in Python 2: what parses is taken by its word
    function = tree is not None and not any(shifts(node) for node in ast.walk(tree))
    if tree is None or siblings.imports(name, tree):
        text = refactored(refactor, text, name, [RELATIVE], function)
    chosen = [one for one in chosen if one != RELATIVE]
    return refactored(refactor, text, name, chosen, function) if chosen else text


def one(name, source, siblings):
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    text = source.decode(encoding)
    new = fixed(name, text, siblings)
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
    asked = json.load(sys.stdin)
    files = [{"name": file["name"], "source": base64.b64decode(file["source"])} for file in asked["files"]]
    siblings = Siblings(files, asked["programs"])
    relative(importlib.import_module(PACKAGE + ".fixes.fix_import").FixImport, siblings)
    answers = []
    for file in files:
        answer = {"name": file["name"], "source": "", "diff": "", "error": "", "line": 0}
        try:
            source, answer["diff"] = one(file["name"], file["source"], siblings)
            answer["source"] = base64.b64encode(source).decode("ascii")
        except Exception as err:  # one file that cannot be read does not hide the others
            answer["error"], answer["line"] = why_not(err)
        answers.append(answer)
    json.dump(answers, sys.stdout)


main()
