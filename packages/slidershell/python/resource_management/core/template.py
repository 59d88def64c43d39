"""Renders templates: by jinja2 where this Python has it, else by the built-in subset of its language.

Both are told the same. A file of `templates/` is strict: an undefined name is an error, the newline behind a block goes
with it. A template that is written in the script is lenient: what is undefined is empty, the newline stays.
"""

from resource_management.core import subset
from resource_management.core.exceptions import Fail

try:
    import jinja2
except ImportError:
    jinja2 = None


def render(text, name, variables, lenient=False, included=None):
    """The text with the variables filled in; fails with the template's name and the line.

    included gives the text of a template that this one names.
    """
    if not jinja2:
        return subset.render(text, name, variables, lenient)
    return with_jinja2(text, name, variables, lenient, included)


def with_jinja2(text, name, variables, lenient=False, included=None):
    engine = jinja2.Environment(
        autoescape=False, undefined=jinja2.Undefined if lenient else jinja2.StrictUndefined, trim_blocks=not lenient,
        loader=jinja2.FunctionLoader(included) if included else None)
    try:
        return engine.from_string(text).render(variables)
    except jinja2.TemplateSyntaxError as err:
        raise Fail("template {}, line {}: {}".format(name, err.lineno, err.message)) from err
    except (jinja2.TemplateError, Fail) as err:
        raise Fail("template {}, line {}: {}".format(name, line_of(err), err)) from err


def line_of(err):
    """The line of the template that an error of rendering came from: jinja2 puts it into the traceback."""
    step, found = err.__traceback__, "?"
    while step:
        if step.tb_frame.f_code.co_filename == "<template>":
            found = step.tb_lineno
        step = step.tb_next
    return found
