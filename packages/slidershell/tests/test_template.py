"""Templates: the built-in subset against what is written here, and against jinja2 where it is installed."""

import unittest

import harness
from resource_management import *
from resource_management.core import subset, template


def escape_property(value):
    return "'{}'".format(value.replace("'", "''"))


NAMES = {
    "host": "h1", "port": 8080, "yes": True, "no": False, "nothing": None, "empty": "", "ratio": 0.5,
    "hosts": ["b", "A", "c"], "none_listed": [], "xml": "<a href='x'>\"&</a>",
    "site": ConfigDictionary({"a.b": "true", "n": "7", "in": {"x": "deep"}}), "pairs": {"k2": "v2", "K1": "v1"},
    "escape_property": escape_property, "text": "  Padded ",
}

# (template, what it becomes)
RENDERED = (
    ("", ""),
    ("plain { } % # text", "plain { } % # text"),
    ("{{host}}:{{ port }}", "h1:8080"),
    ("{{ yes }} {{ nothing }} {{ ratio }} {{ hosts }}", "True None 0.5 ['b', 'A', 'c']"),
    ("{{ 'lit' }} {{ \"a\\n\" }}{{ 3 }} {{ 1.5 }} {{ -2 }} {{ true }} {{ ['x', 1] }}", "lit a\n3 1.5 -2 True ['x', 1]"),
    ("{{ '}}' }}{{ \"%}\" }}", "}}%}"),
    ("{{ site['a.b'] }} {{ site.n }} {{ site['in'].x }} {{ hosts[0] }} {{ hosts[-1] }}", "True 7 deep b c"),
    ("{{ host.upper() }} {{ escape_property(\"it's\") }} {{ site.get('gone', 'd') }}", "H1 'it''s' d"),
    ("{{ gone | default('d') }} {{ gone|d('d') }}{{ gone|d }}|{{ site.in.gone is defined }}", "d d|True"),
    ("{{ empty|default('x') }}|{{ empty|default('x', true) }} {{ hosts.gone|default(port) }}", "|x 8080"),
    ("{{ xml|e }}{{ xml|escape }}", "&lt;a href=&#39;x&#39;&gt;&#34;&amp;&lt;/a&gt;" * 2),
    ("{{ host|upper|lower }}{{ text|trim }}.{{ text|trim|replace('d', 't') }}", "h1Padded.Pattet"),
    ("{{ hosts|join(',') }} {{ hosts|join }} {{ hosts|sort|join('<') }}", "b,A,c bAc A<b<c"),
    ("{{ hosts|length }} {{ hosts|count }} {{ hosts|first }} {{ hosts|last }} {{ 'ab'|list }}", "3 3 b c ['a', 'b']"),
    ("{{ '7'|int }} {{ '7.9'|int }} {{ 'x'|int }} {{ 'x'|int(3) }} {{ 7|string }}", "7 7 0 3 7"),
    ("{% for k, v in pairs|dictsort %}{{ k }}={{ v }};{% endfor %}", "K1=v1;k2=v2;"),
    ("{{ 1 == 1 }} {{ 1 != 1 }} {{ 1 < 2 <= 2 }} {{ 2 > 3 or 3 >= 3 }}", "True False True True"),
    ("{{ 'b' in hosts }} {{ 'x' not in hosts }} {{ not yes }} {{ not 1 == 2 }}", "True True False True"),
    ("{{ yes and host }} {{ no and gone }} {{ yes or gone }} {{ empty or port }}", "h1 False True 8080"),
    ("{{ (no or yes) and (1 in [1, 2]) }}", "True"),
    ("{{ gone is defined }} {{ gone is not defined }} {{ gone is undefined }} {{ nothing is none }}",
     "False True True True"),
    ("{{ host if yes else gone }} {{ gone if no else 'z' }}", "h1 z"),
    ("a{# note {{ gone }} #}b\n{# alone #}\nc", "ab\nc"),
    ("{% if yes %}1{% endif %}{% if no %}2{% endif %}", "1"),
    ("{% if no %}1{% elif port == 8080 %}2{% else %}3{% endif %}", "2"),
    ("{% if no %}1{% elif no %}2{% else %}3{% endif %}", "3"),
    ("{% if yes %}{% if no %}a{% else %}b{% endif %}{% endif %}", "b"),
    ("x\n{% if yes %}\nline\n{% endif %}\ny", "x\nline\ny"),
    ("x\n  {% if yes %}  \nline\n  {% endif %}\n\ny", "x\n    \nline\n  \ny"),
    ("a  {%- if yes -%}  b  {%- endif -%}  c {{- host -}} d{#- x -#} e", "abch1de"),
    ("{% for h in hosts %}{{ loop.index }}{{ loop.index0 }}{{ h }}{% if not loop.last %},{% endif %}{% endfor %}",
     "10b,21A,32c"),
    ("{% for h in hosts %}{{ h if loop.first else '' }}{{ loop.revindex }}{{ loop.length }}{% endfor %}", "b332313"),
    ("{% for h in none_listed %}x{% else %}none{% endfor %}", "none"),
    ("{% for a in hosts %}{% for b in [1, 2] %}{{ a }}{{ loop.index }}{{ b }} {% endfor %}{{ loop.index }}{% endfor %}",
     "b11 b22 1A11 A22 2c11 c22 3"),
    ("{% for k, v in pairs.items() %}\n{{ k }}: {{ v }}\n{% endfor %}\n", "k2: v2\nK1: v1\n"),
    ("{% for host in hosts %}{{ host }}{% endfor %}{{ host }}", "bAch1"),
    ("{% for i in range(2) %}{{ i }}{% endfor %}", "01"),
    ("one\r\ntwo\rthree\n", "one\ntwo\nthree"),
    ("two newlines\n\n", "two newlines\n"),
    ("{{ str(port) }}", "8080"),
    ("{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ -2 + 1 }}", "3 9 3.5 3 3 -1"),
    ("{{ host ~ ':' ~ port }} {{ port - 80 > 7999 }} {{ 'a' + 'b' ~ 1 }}", "h1:8080 True ab1"),
    ("{{ 'on' if yes }}", "on"),
)

# (template, what it becomes where it is lenient: written in the script, not a file of templates/)
LENIENT = (
    ("{{ gone }}|{{ pairs.gone }}|{{ hosts.gone }}|{{ hosts[7] }}|{{ none_listed|first }}", "||||"),
    ("{% if gone %}1{% elif not gone %}2{% endif %}{{ 3 if gone else 4 }}{{ 5 if gone }}", "24"),
    ("{% for x in gone %}{{ x }}{% else %}none{% endfor %}", "none"),
    ("{{ gone|default('d') }}{{ gone|upper }}{{ gone|length }}{{ gone|join }}{{ gone|list }}{{ gone|e }}", "d0[]"),
    ("{{ gone is defined }} {{ gone is none }} {{ gone == other }} {{ gone == 1 }} {{ gone != '' }}",
     "False False True False True"),
    ("{{ 'a' in gone }} {{ gone in hosts }} {{ gone or host }} {{ gone and host }}.", "False False h1 ."),
    ("{{ gone ~ 'x' }}{{ 'x' ~ gone }}", "xx"),
    ("x\n{% if yes %}\nline\n{% endif %}\ny", "x\n\nline\n\ny"),
    ("{% for h in hosts %}\n{{ h }}{% endfor %}\n{# note #}\nend\n", "\nb\nA\nc\n\nend"),
)

# (template, what the failure says even where it is lenient)
LENIENT_FAILURES = (
    ("{{ gone.deeper }}", "template t, line 1: 'gone' is undefined"),
    ("\n{{ gone['deeper'] }}", "template t, line 2: 'gone' is undefined"),
    ("{{ gone() }}", "'gone' is undefined"),
    ("{{ gone + 1 }}", "'gone' is undefined"),
    ("{{ 1 - gone }}", "'gone' is undefined"),
    ("{{ gone < 1 }}", "'gone' is undefined"),
    ("{{ gone|int }}", "'gone' is undefined"),
    ("{{ gone|dictsort }}", "'gone' is undefined"),
    ("{{ host.gone.deeper }}", "has no attribute 'gone'"),
    ("{{ site.gone }}", "configuration /gone is not set"),
)

# (template, what the failure says), by both engines
FAILURES = (
    ("{{ gone }}", "template t, line 1: 'gone' is undefined"),
    ("\n\n{{ host.gone }}", "template t, line 3: .* has no attribute 'gone'"),
    ("\n{% if gone %}{% endif %}", "template t, line 2: 'gone' is undefined"),
    ("\n{% for x in gone %}{% endfor %}", "template t, line 2: 'gone' is undefined"),
    ("{{ gone == 1 }}", "line 1: 'gone' is undefined"),
    ("{{ gone.deeper }}", "line 1: 'gone' is undefined"),
    ("a\n{{ site.gone }}", "template t, line 2: configuration /gone is not set"),
    ("a\n{% if site['x']['y'] %}{% endif %}", "template t, line 2: configuration /x/y is not set"),
)

# what only the subset refuses, with the line
BEYOND = (
    ("a\n{% set x = 1 %}", "line 2", r"no {% set %}; there are if and for"),
    ("{% include 'x' %}", "line 1", "include"),
    ("{{ 2 ** 3 }}", "line 1", r"want a name, got '\*'"),
    ("{{ hosts|map('upper') }}", "line 1", "no filter 'map'; there are count, d, default"),
    ("{{ host is string }}", "line 1", "no test 'string'; there are defined"),
    ("{% for x in hosts if x %}{% endfor %}", "line 1", "'if'"),
    ("{{ host|default(value='x') }}", "line 1", "want ','"),
    ("\n{% if yes %}\n", "line 2", "a block without its endif"),
    ("{% for x in hosts %}", "line 1", "a block without its endfor"),
    ("{% endif %}", "line 1", "endif"),
    ("\n\n{{ host", "line 3", "no end of 'host'"),
    ("{# note", "line 1", "a comment without end"),
    ("{{ }}", "line 1", "want a name, got the end"),
    ("{{ @ }}", "line 1", "'@"),
)


class TemplateTest(unittest.TestCase):
    engines = [subset.render] + ([template.with_jinja2] if template.jinja2 else [])

    def test_rendered(self):
        for render in self.engines:
            for text, want in RENDERED:
                with self.subTest(text, engine=render.__name__):
                    self.assertEqual(render(text, "t", {**NAMES, "str": str}), want)

    def test_lenient(self):
        for render in self.engines:
            for text, want in LENIENT:
                with self.subTest(text, engine=render.__name__):
                    self.assertEqual(render(text, "t", NAMES, lenient=True), want)
            for text, want in LENIENT_FAILURES:
                with self.subTest(text, engine=render.__name__), self.assertRaisesRegex(Fail, want):
                    render(text, "t", NAMES, lenient=True)

    def test_failures(self):
        for render in self.engines:
            for text, want in FAILURES:
                with self.subTest(text, engine=render.__name__), self.assertRaisesRegex(Fail, want):
                    render(text, "t", NAMES)

    def test_beyond(self):
        for text, line, want in BEYOND:
            with self.subTest(text), self.assertRaisesRegex(
                    Fail, r"template t, {}: .*{}.*install jinja2".format(
                        line, want)):
                subset.render(text, "t", NAMES)

    def test_an_error_of_a_function_is_its_own(self):
        for render in self.engines:
            with self.assertRaises(ZeroDivisionError):
                render("{{ f() }}", "t", {"f": lambda: 1 / 0})


class SourceTest(harness.FolderCase):
    def test_parameters_and_keywords(self):
        self.env.set_params({"port": 1, "both": ["same"]})
        self.write("package/templates/t.j2", "{{ port }} {{ word }} {{ both[0] }} {{ env.config.basedir }}\n")
        self.assertEqual(Template("t.j2", word="n")(), "1 n same {}/package\n".format(self.folder))
        self.assertRaisesRegex(Fail, "'port' is defined twice", Template, "t.j2", port=2)

    def test_a_newline_is_appended(self):
        for text, want in (("a", "a\n"), ("a\n", "a\n"), ("a\n\n", "a\n"), ("", "\n")):
            self.assertEqual(InlineTemplate(text)(), want)

    def test_functions_of_the_script(self):
        text = "{% for key, value in configurations_dict.items() %}{{ key }}: {{ escape_property(value) }}\n{% endfor %}"
        site = ConfigDictionary({"a": "x", "b": "it's"})
        self.assertEqual(InlineTemplate(text, configurations_dict=site, extra_imports=[escape_property])(),
                         "a: 'x'\nb: 'it''s'\n")

    def test_an_absolute_name(self):
        path = self.write(self.folder + "/t.j2", "x")
        self.assertEqual(Template(path)(), "x\n")

    def test_the_template_is_named(self):
        self.write("package/templates/t.j2", "a\n{{ gone }}")
        self.assertRaisesRegex(Fail, "template t.j2, line 2: 'gone' is undefined", Template("t.j2"))
        self.assertRaisesRegex(Fail, r"template \(inline\), line 1: 'gone'", InlineTemplate("{{ gone.deeper }}"))

    def test_a_template_of_the_script_is_lenient(self):
        text = "{% if gone %}\nset\n{% else %}\nhost={{ gone }}\n{% endif %}\n"
        self.assertEqual(InlineTemplate(text)(), "\nhost=\n")
        self.write("package/templates/t.j2", text)
        self.assertRaisesRegex(Fail, "template t.j2, line 1: 'gone' is undefined", Template("t.j2"))

    @unittest.skipUnless(template.jinja2, "needs jinja2")
    def test_a_template_includes_another(self):
        self.env.set_params({"port": 1})
        self.write("package/templates/t.j2", "a {% include 'part.j2' %} b\n")
        self.write("package/templates/part.j2", "port {{ port }}")
        self.assertEqual(Template("t.j2")(), "a port 1 b\n")
        self.assertEqual(InlineTemplate("{% include 'port {{ port }}' %}")(), "port 1\n")


if __name__ == "__main__":
    unittest.main()
