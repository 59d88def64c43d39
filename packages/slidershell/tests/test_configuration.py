"""Configurations, and the functions that read them."""

import copy
import json
import os
import pickle
import sys
import types
import unittest

import harness
from resource_management import *
from resource_management.libraries.functions.is_empty import is_empty


class ConfigDictionaryTest(unittest.TestCase):
    def setUp(self):
        self.config = ConfigDictionary({"configurations": {"global": {
            "t": "true", "f": "false", "i": "8080", "minus": "-7", "r": "0.75", "e": "1e3", "s": "ps-1", "empty": "",
            "version": "1.2.3", "under": "1_000", "n": 3, "b": True, "none": None, "list": ["1"], "True": "True"}}})

    def test_values_get_types(self):
        have = self.config["configurations"]["global"]
        for key, want in (
                ("t", True), ("f", False), ("i", 8080), ("minus", -7), ("r", 0.75), ("e", 1000.0), ("s", "ps-1"),
                ("empty", ""), ("version", "1.2.3"), ("under", "1_000"), ("n", 3), ("b", True), ("none", None),
                ("list", ["1"]), ("True", "True")):
            with self.subTest(key):
                self.assertEqual((have[key], type(have[key])), (want, type(want)))
        self.assertEqual(have.get("t"), "true")
        self.assertIn(("i", "8080"), have.items())

    def test_nothing_is_assigned_but_updates_work(self):
        have = self.config["configurations"]
        with self.assertRaisesRegex(Fail, "configuration /configurations/x cannot be assigned"):
            have["x"] = 1
        self.assertEqual(list(have), ["global"])
        have["global"].update(added="7")
        self.assertEqual((have["global"]["added"], have["global"].pop("t")), (7, "true"))
        self.assertTrue(is_empty(have["global"]["t"]))

    def test_it_has_the_methods_of_python_2(self):
        have = ConfigDictionary({"a": "1"})
        self.assertEqual((list(have.iteritems()), have.has_key("a"), have.has_key("b")), ([("a", "1")], True, False))

    def test_a_missing_key_fails_when_it_is_used(self):
        port = self.config["configurations"]["hbase-site"]["a.port"]
        for use in (
                str, bool, int, float, len, list, os.fspath, lambda x: x + 1, lambda x: 1 + x, lambda x: "a" + x,
                lambda x: x == "a", lambda x: x != "a", lambda x: x < 1, lambda x: x.lower(), lambda x: "a" in x,
                lambda x: "{}".format(x), lambda x: "%s" % x, lambda x: x % 2, lambda x: os.path.join("/", x),
                lambda x: not x, lambda x: x * 2, lambda x: -x):
            with self.assertRaises(Fail) as caught:
                use(port)
            self.assertEqual(str(caught.exception), "configuration /configurations/hbase-site/a.port is not set")
        self.assertEqual(repr(port), "UnknownConfiguration('/configurations/hbase-site/a.port')")
        self.assertEqual(port.name, "a.port")
        self.assertTrue(is_empty(port))
        self.assertFalse(is_empty(""))
        self.assertEqual({port: 1}[port], 1)

    def test_it_is_copied_and_serialised_as_a_dictionary(self):
        for other in (copy.deepcopy(self.config), pickle.loads(pickle.dumps(self.config)),
                      ConfigDictionary(json.loads(json.dumps(self.config)))):
            self.assertEqual(other, self.config)
            self.assertEqual(other["configurations"]["global"]["i"], 8080)
            with self.assertRaisesRegex(Fail, "/configurations/x is not set"):
                str(other["configurations"]["x"])


class FunctionsTest(harness.FolderCase):
    def setUp(self):
        super().setUp()
        Script.config = ConfigDictionary({"hostname": "h", "configurations": {
            "global": {"port": "80", "dir": "${base}/x"}, "site": {"a.b": "1"}}})
        self.addCleanup(setattr, Script, "config", None)
        self.addCleanup(Logger.sensitive_strings.clear)

    def test_default(self):
        for name, want in (("/configurations/site/a.b", 1), ("/configurations/site/c", "d"), ("port", 80),
                           ("/port", "d"), ("gone", "d"), ("/hostname", "h"), ("/hostname/x", "d")):
            self.assertEqual(default(name, "d"), want, name)

    def test_format_takes_the_callers_variables_then_the_parameters(self):
        user, self_like, nested = "ann", "s", types.SimpleNamespace(inner=types.SimpleNamespace(port=9))
        row = {"k": ["v"]}
        self.env.set_params({"root": "/r", "user": "ann", "other": "o"})
        for text, want in (
                ("{user} at {root}", "ann at /r"), ("{nested.inner.port:03}", "009"), ("{row[k][0]}", "v"),
                ("{{awk}} {user!r}", "{awk} 'ann'"), ("{}", "p"), ("{0}{more}", "pm"),
                ("{quoted!e} {user!e} {none!e}", "'it'\"'\"'s' ann ''")):
            quoted, none = "it's", ""
            self.assertEqual(format(text, "p", more="m"), want)
        del user, self_like, nested, row

    def test_format_refuses_what_is_not_known_or_not_clear(self):
        self.env.set_params({"user": "bob", "missing": Script.get_config()["configurations"]["gone"]})
        user = "ann"
        for text, want in (
                ("{user}", "'user' is one value here and another among the parameters"),
                ("{gone}", "no variable 'gone', neither here nor among the parameters"),
                ("{missing}", "configuration /configurations/gone is not set")):
            with self.assertRaisesRegex(Fail, want):
                format(text)
        del user

    def test_format_tells_that_no_parameters_are_set(self):
        with self.assertRaisesRegex(Fail, r"no variable 'gone', and no parameters are set: call env.set_params\(params\)"):
            format("{gone}")

    def test_format_hides(self):
        word = "se cret"
        self.assertEqual(format("login {word!p}"), "login 'se cret'")
        self.assertEqual(format("login {word!h}"), "login se cret")
        self.assertEqual(Logger.get_protected_text("x login 'se cret'; login se cret"),
                         "x login [PROTECTED]; login [PROTECTED]")
        del word

    def test_format_at_the_top_of_a_module(self):
        names = {"format": format, "root": "/r"}
        exec('path = format("{root}/bin")', names)
        self.assertEqual(names["path"], "/r/bin")

    def test_parameters_are_the_variables_of_a_module(self):
        module = types.ModuleType("params")
        exec("import os\nfrom resource_management import *\nport = 1\n_x = 2\nclass C: pass\ndef f(): pass\n"
             "gone = Script.get_config()['gone']\n", vars(module))
        self.env.set_params(module)
        self.assertEqual(sorted(self.env.config.params), ["_x", "gone", "port"])

    def test_dictionaries_among_the_parameters_have_attributes(self):
        conf = {"a": {"b": 1}, "n": 2}
        self.env.set_params({"conf": conf, "site": Script.get_config()["configurations"]["site"]})
        self.assertEqual(format("{conf[a][b]} {conf[n]}"), "1 2")  # the same dictionary, here and among the parameters
        del conf
        self.assertEqual(format("{conf.a.b} {conf[n]}"), "1 2")
        text = "{% for k, v in conf.a.iteritems() %}{{ k }}={{ v }};{% endfor %}{{ site.has_key('a.b') }}"
        self.assertEqual(InlineTemplate(text)(), "b=1;True\n")

    def test_the_configuration_among_the_parameters_has_attributes(self):
        self.env.set_params({"config": Script.get_config()})
        for text, want in (
                ("{config.hostname}", "h"), ("{config.configurations.site[a.b]}", "1"),
                ("{config[configurations].global.port:05}", "00080")):
            self.assertEqual(format(text), want)
        with self.assertRaisesRegex(Fail, "configuration /configurations/gone is not set"):
            format("{config.configurations.gone}")
        self.assertEqual(copy.deepcopy(self.env.config.params["config"]), Script.get_config())

    def test_update_config(self):
        self.env.update_config({"a.b": 1, "basedir": "/other"}, overwrite=False)
        self.assertEqual((self.env.config.a.b, self.env.config.basedir), (1, self.folder + "/package"))
        self.env.update_config({"a.b": 2})
        self.assertEqual(self.env.config.a.b, 2)

    def test_checked_unite(self):
        same = ["x"]
        self.assertEqual(checked_unite({"a": 1, "s": same}, {"b": 2, "s": same}), {"a": 1, "b": 2, "s": same})
        self.assertRaisesRegex(Fail, "'a' is defined twice", checked_unite, {"a": 1}, {"a": 2})

    def test_substitute_vars(self):
        site = ConfigDictionary({"a": "${b}/x", "b": "/r", "loop": "${loop}.", "t": "true", "p": "80"})
        for raw, want in (("${a}/${p}", "/r/x/80"), ("${t}", "true"), ("${gone}${b}", "${gone}${b}"), ("none", "none"),
                          ("${a b}", "${a b}"), ("${loop}", "${loop}" + "." * 20)):
            self.assertEqual(substitute_vars(raw, site), want)

    def test_get_kinit_path(self):
        os.makedirs("bin")
        self.assertEqual(get_kinit_path([None, "", "bin"]), "")
        self.write("bin/kinit", "")
        self.assertEqual(get_kinit_path([None, "nowhere", "bin"]), "bin/kinit")

    def test_get_port_from_url(self):
        self.assertEqual(get_port_from_url("http://h:8088/x"), "8088")
        self.assertRaises(Fail, get_port_from_url, "h")
        self.assertTrue(is_empty(get_port_from_url(Script.get_config()["gone"])))

    def test_an_environment_is_needed(self):
        self.env.__exit__(None, None, None)
        self.addCleanup(self.env.__enter__)
        self.assertRaisesRegex(Fail, "no environment", File, "x")
        root = "/r"
        self.assertEqual(format("{root}"), "/r")
        del root
        with Environment("p") as env:
            self.assertIs(Environment.get_instance(), env)
            env.set_params({"a": 1})
            self.assertEqual(Environment.get_instance_copy().config.params, {"a": 1})


class NamesTest(unittest.TestCase):
    """The names and module paths that published packages use."""

    def test_star(self):
        names = {}
        exec("from resource_management import *", names)
        for name in ("Script ConfigDictionary format default Execute File Directory check_process_status Template "
                     "InlineTemplate StaticFile TemplateConfig PropertiesFile XmlConfig Logger Fail "
                     "ComponentIsNotRunning ClientComponentHasNoStatusCommand ClientComponentHasNoStatus HdfsDirectory "
                     "Link Package Service User Group ExecuteScript Tarball ExecuteHadoop CopyFromLocal DownloadSource "
                     "substitute_vars is_empty get_kinit_path Environment checked_unite functions source re").split():
            self.assertIn(name, names)
        self.assertTrue(callable(names["format"]) and callable(names["default"]))
        self.assertIs(names["functions"].get_kinit_path, names["get_kinit_path"])
        self.assertIs(names["source"].InlineTemplate, names["InlineTemplate"])

    def test_module_paths(self):
        for line in (
                "from resource_management.core.shell import checked_call, call, quote_bash_args",
                "from resource_management.core.environment import Environment",
                "from resource_management.core.base import Fail, Resource",
                "from resource_management.core.logger import Logger",
                "from resource_management.core.exceptions import Fail, ComponentIsNotRunning",
                "from resource_management.core.resources.system import Execute, File, Directory",
                "from resource_management.core.resources import Execute, Link, Tarball",
                "from resource_management.core.resources.tarball import Tarball",
                "from resource_management.core.source import Template, InlineTemplate, StaticFile",
                "from resource_management.core.utils import checked_unite, AttributeDictionary",
                "from resource_management.core import *",
                "from resource_management.libraries import *",
                "from resource_management.libraries.functions import *",
                "from resource_management.libraries.functions import format, default",
                "from resource_management.libraries.functions.default import default",
                "from resource_management.libraries.functions.format import format",
                "from resource_management.libraries.functions.is_empty import *",
                "from resource_management.libraries.functions.check_process_status import check_process_status",
                "from resource_management.libraries.functions.get_port_from_url import get_port_from_url",
                "from resource_management.libraries.functions.get_kinit_path import get_kinit_path",
                "from resource_management.libraries.functions.substitute_vars import substitute_vars",
                "from resource_management.libraries.script import Script",
                "from resource_management.libraries.script.script import Script",
                "from resource_management.libraries.script.config_dictionary import ConfigDictionary",
                "from resource_management.libraries.resources import XmlConfig",
                "from resource_management.libraries.resources.hdfs_directory import HdfsDirectory",
                "from resource_management.libraries.resources.template_config import TemplateConfig",
                "from resource_management.libraries.resources.xml_config import XmlConfig",
                "from resource_management.libraries.resources.properties_file import PropertiesFile"):
            exec(line, {})

    def test_the_sources_are_python_3_8(self):
        import ast
        found = 0
        for parent, _, names in os.walk(harness.LIBRARY):
            for name in names:
                if name.endswith(".py"):
                    with open(os.path.join(parent, name), encoding="utf-8") as file:
                        ast.parse(file.read(), name, feature_version=(3, 8))
                    found += 1
        self.assertGreater(found, 20)
        self.assertGreaterEqual(sys.version_info, (3, 8))


if __name__ == "__main__":
    unittest.main()
