class Library:
    """What the library of scripts gives, read from its sources: nothing of it is imported here."""

    def __init__(self, files):
        self.modules = {}  # names of modules → what they give
        self.arguments = {}  # resources → the arguments that they take
        self.stars, common = {}, set()
        for file in files:
            name, tree = file["name"][:-len(".py")].replace("/", "."), ast.parse(file["source"])
            name = name[:-len(".__init__")] if name.endswith(".__init__") else name
            self.modules[name] = own_names(tree)
            self.stars[name] = stars(tree)
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    given = class_keys(node, "arguments")
                    if [named(base) for base in node.bases] == ["Resource"] and given:
                        self.arguments[node.name] = given
                    common |= class_keys(node, "common") if node.name == "Resource" else set()
        for given in self.arguments.values():
            given |= common | {"name", "env", "action"}

    def has(self, module, name):
        """Tells whether a module gives a name: its own, that of a module below it, or one of those it takes all of."""
        return name in self.modules[module] or module + "." + name in self.modules or any(
            one not in self.modules or self.has(one, name) for one in self.stars[module])


def class_keys(node, name):
    """The keys of the dictionary that a class has under a name; none where not all are texts."""
    for one in node.body:
        if isinstance(one, ast.Assign) and named(one.targets[0]) == name and isinstance(one.value, ast.Dict):
            keys = {text_of(key) for key in one.value.keys}
            return set() if None in keys else keys
    return set()


def stars(tree):
    """The modules that a file takes all names of."""
    return [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]


ROOT = "resource_management"
IMAGE = "a process changes nothing of its host: put it into the image (muster.image)"
RELEASE = "/etc/os-release and the module platform tell of the host"

# What Slider's library gave scripts and muster's does not, with what to do.
ABSENT = {
    "Hook": "a method of the script's class does that",
    "MonitorWebserver": IMAGE, "Mount": "a process changes nothing of its host: the operator's policy has mounts",
    "OSCheck": RELEASE, "Provider": "write a function in place of the resource",
    "Repository": IMAGE, "ResourceArgument": "write a function in place of the resource",
    "System": RELEASE,
}


class Surroundings:
    """What the files of a package find when they run: each other, the library, and a Python."""

    def __init__(self, files, asked, siblings):
        self.library = Library(asked["library"])
        self.siblings, self.oldest, self.hosts = siblings, asked["oldest"], asked["hosts"]
        # a script may import its neighbours, whatever they are called
        self.neighbours = {part for file in files for part in file["name"].replace(".py", "").split("/")}
        self.source = b"\n".join(file["source"] for file in files)
        self.told = {}

    def defined(self, name):
        """Tells whether any file gives the name a meaning of its own."""
        if name not in self.told:
            own = r"^\s*(?:(?:class|def)\s+{0}\b|{0}\s*=[^=])".format(re.escape(name))
            self.told[name] = bool(re.search(own.encode(), self.source, re.MULTILINE))
        return self.told[name]

    def nowhere(self, first):
        """Tells whether hosts as this one have no such module, for all that can be seen."""
        if self.siblings.unknown or not self.hosts or first in self.neighbours or first in MODULES:
            return False
        more = [site.getusersitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        try:
            return not (importlib.util.find_spec(first) or importlib.machinery.PathFinder.find_spec(first, more))
        except (ImportError, ValueError):
            return False


class Lacks:
    """What one file takes from the library, from Python or from its neighbours that they do not have."""

    def __init__(self, tree, around):
        self.around, self.own, self.modules = around, own_names(tree), imported(tree)
        mine = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level
                and node.module.partition(".")[0] == ROOT and ROOT not in around.neighbours]
        others = {one.partition(".")[0] for one in stars(tree) if one} - around.neighbours - {ROOT}
        self.all_of_it = not others and any(node.names[0].name == "*" for node in mine)
        self.taken = {alias.name for node in mine for alias in node.names if not alias.asname}

    def of(self, node):
        """Tuples of the failure's kind, what there is, what is wanted and a hint."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self.module(alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from self.module(node.module)
            for alias in node.names:
                yield from self.member(node.module, alias.name)
        elif isinstance(node, ast.Attribute):
            yield from self.later_member(member(node, self.modules), node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id in ABSENT and self.all_of_it and node.id not in self.own and not self.around.defined(node.id):
                yield "NameError", node.id + ", which muster's library lacks", "what it has", ABSENT[node.id]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from self.arguments(node, node.func.id)

    def module(self, name):
        first = name.partition(".")[0]
        if first in self.around.neighbours:
            return
        if first == ROOT and name not in self.around.library.modules:
            yield "ImportError", "the module {}, which muster's library lacks".format(name), "one that it has", (
                RELEASE if name == ROOT + ".core.system" else "doc/scripts.md has what there is")
        elif first == "ambari_commons":
            yield "ImportError", "the module {}, which is Ambari's".format(name), "one that is there", (
                RELEASE if name.endswith("os_check") else "")
        for version, gone in LATER.items():
            for write in {gone.get("modules", {}).get(one) for one in (first, name)} - {None}:
                yield from self.later("the module " + name, version, write)
                return
        if first not in (ROOT, "ambari_commons") and self.around.nowhere(first):
            near = difflib.get_close_matches(first, sorted(self.around.neighbours), 1, 0.8)
            yield "ImportError", "the module {}, which this Python lacks".format(first), (
                "a file beside the script, or a module that each host's Python has"), (
                "did you mean {}?".format(near[0]) if near else "")

    def member(self, module, name):
        library = self.around.library
        if ROOT not in self.around.neighbours and module in library.modules and name != "*":
            if name in ABSENT or not library.has(module, name):
                yield "ImportError", "{} of {}, which muster's library lacks".format(name, module), (
                    "what it has"), ABSENT.get(name, "doc/scripts.md has what there is")
        yield from self.later_member(module, name)

    def later_member(self, module, name):
        if module in self.around.neighbours:
            return
        for version, gone in LATER.items():
            write = gone.get("members", {}).get(module, {}).get(name)
            if write:
                yield from self.later("{}.{}".format(module, name), version, write)

    def later(self, what, version, write):
        if self.around.oldest:
            yield "ImportError", "{}, which Python {} and later lack".format(what, version), write, ""

    def arguments(self, node, name):
        known = self.around.library.arguments.get(name)
        if not known or self.around.defined(name) or not (
                name in self.taken or self.all_of_it and name not in self.own):
            return
        for word in node.keywords:
            if word.arg and word.arg not in known:
                near = difflib.get_close_matches(word.arg, sorted(known), 1)
                yield "InvalidArgument", "the argument {} of {}, which it lacks".format(word.arg, name), (
                    "one that it has"), "did you mean {}?".format(near[0]) if near else "it takes " + ", ".join(
                        sorted(known - {"name", "env"}))


LATER = REMOVED["later"]


def lacking(tree, lines, around):
    takes, found, guards = Lacks(tree, around), {}, {}
    for node in ast.walk(tree):
        for kind, got, want, hint in takes.of(node):
            if kind not in guards:
                guards[kind] = guarded(tree, kind) | (guarded(tree, "AttributeError") if kind == "ImportError" else set())
            if id(node) not in guards[kind]:
                found.setdefault((node.lineno, got), {**fault(node.lineno, lines, got), "want": want, "hint": hint})
    return [found[key] for key in sorted(found)]
