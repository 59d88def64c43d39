import ast


def removed(kind):
    """What Python 3 has no more, of both halves of the table."""
    return {**REMOVED["changed"][kind], **REMOVED["left"].get(kind, {})}


BUILTINS, DICT_METHODS, MODULES = removed("builtins"), removed("methods"), removed("modules")


def own_names(tree):
    """The names that a module gives a meaning itself."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def imported(tree):
    """The modules that names stand for by `import module [as name]`."""
    return {alias.asname or alias.name: alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
            for alias in node.names if alias.asname or "." not in alias.name}


def member(node, modules):
    """The module of module.name, else an empty text."""
    return modules.get(node.value.id, "") if isinstance(node.value, ast.Name) else ""


class Siblings:
    """Which modules Python 2 would find beside a file, and Python 3 does not: those of a folder with __init__.py that
    is not on sys.path itself. The folders of programs are, and a script that names sys.path may add any.
    """

    def __init__(self, files, programs):
        self.names = {file["name"] for file in files}
        self.path = {"package/scripts", *programs}
        self.unknown = any(b"sys.path" in file["source"] for file in files)

    def has(self, file, module):
        folder, first = file.rpartition("/")[0], module.partition(".")[0]
        if self.unknown or not first or folder in self.path or folder + "/__init__.py" not in self.names:
            return False
        return bool({"{}/{}.py".format(folder, first), "{}/{}/__init__.py".format(folder, first)} & self.names)

    def imports(self, file, tree):
        """The first sibling that a node imports, or that one below a tree does; an empty text: none."""
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])
            for name in names:
                if self.has(file, name):
                    return name
        return ""


def fixers():
    """2to3: the standard library's lib2to3, else its fork fissix, else None."""
    try:
        from lib2to3 import refactor
    except ImportError:
        try:
            from fissix import refactor
        except ImportError:
            return None
    return refactor


def refactored(refactor, text, name, chosen, print_function=False):
    """The text as the chosen fixers would have it."""
    package = refactor.__name__.partition(".")[0] + ".fixes.fix_"
    tool = refactor.RefactoringTool([package + one for one in chosen], {"print_function": print_function})
    ends = "" if text.endswith("\n") else "\n"  # its grammar wants a last newline
    changed = str(tool.refactor_string(text + ends, name))
    return changed[:-1] if ends else changed
