import ast

# Builtins of Python 2 that Python 3 does not have.
BUILTINS = {"unicode", "basestring", "xrange", "raw_input", "long", "unichr", "execfile", "reload", "intern", "reduce"}
# Methods of Python 2's dict that Python 3's does not have.
DICT_METHODS = {"has_key", "iteritems", "iterkeys", "itervalues"}


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
