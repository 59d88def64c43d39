"""The environment of a process that uses HDFS."""

import os
import shutil
import stat
import tempfile
import unittest

import package  # noqa: F401  (finds the scripts)
import hdfs


class EnvironmentTest(unittest.TestCase):
    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="muster-tf-hdfs-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.conf = self.folder("conf")
        self.bare = {"PATH": self.folder("empty")}

    def folder(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        return path

    def hadoop(self, says):
        """A Hadoop whose command says this when it is asked for its class path with the globs expanded."""
        home = self.folder("hadoop")
        self.folder("hadoop/lib/native")
        command = os.path.join(self.folder("hadoop/bin"), "hadoop")
        with open(command, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\ntest "$*" = "classpath --glob" || exit 9\n' + says)
        os.chmod(command, stat.S_IRWXU)
        return home

    def java(self, lib):
        path = self.folder("java/" + lib)
        with open(os.path.join(path, "libjvm.so"), "w", encoding="utf-8"):
            pass
        return os.path.join(self.root, "java"), path

    def test_not_asked_for(self):
        self.assertEqual(({}, ""), hdfs.environment("", "ada", "", self.bare))

    def test_the_configuration_is_not_there(self):
        more, warning = hdfs.environment("/no/such/conf", "ada", "", self.bare)
        self.assertEqual({}, more)
        self.assertIn("/no/such/conf: no such folder", warning)

    def test_the_environment_has_another(self):
        more, _ = hdfs.environment("/no/such/conf", "ada", "", dict(self.bare, HADOOP_CONF_DIR=self.conf))
        self.assertEqual({"HADOOP_CONF_DIR": self.conf, "HADOOP_USER_NAME": "ada"}, more)

    def test_no_hadoop(self):
        more, warning = hdfs.environment(self.conf, "ada", "", self.bare)
        self.assertEqual({"HADOOP_CONF_DIR": self.conf, "HADOOP_USER_NAME": "ada"}, more)
        self.assertIn("no hadoop command", warning)

    def test_all_is_there(self):
        home = self.hadoop('echo "$HADOOP_CONF_DIR:$JAVA_HOME/a.jar:/b.jar"')
        for lib in ("lib/server", "jre/lib/amd64/server"):
            with self.subTest(lib=lib):
                java, libjvm = self.java(lib)
                self.addCleanup(shutil.rmtree, java, True)
                more, warning = hdfs.environment(self.conf, "ada", java, dict(
                    self.bare, HADOOP_HOME=home, CLASSPATH="/own.jar", LD_LIBRARY_PATH="/own/lib"))
                self.assertEqual("", warning)
                self.assertEqual({
                    "HADOOP_CONF_DIR": self.conf, "HADOOP_USER_NAME": "ada", "JAVA_HOME": java, "HADOOP_HDFS_HOME": home,
                    "CLASSPATH": "{}:{}/a.jar:/b.jar:/own.jar".format(self.conf, java),
                    "LD_LIBRARY_PATH": "{}/lib/native:{}:/own/lib".format(home, libjvm),
                }, more)
                shutil.rmtree(java)

    def test_hadoop_of_the_path(self):
        home = self.hadoop("echo /b.jar")
        os.symlink(os.path.join(home, "bin", "hadoop"), os.path.join(self.root, "empty", "hadoop"))
        more, warning = hdfs.environment(self.conf, "", "", self.bare)
        self.assertEqual((home, "/b.jar"), (more["HADOOP_HDFS_HOME"], more["CLASSPATH"]))
        self.assertNotIn("HADOOP_USER_NAME", more)
        self.assertIn("no libjvm.so below JAVA_HOME (not set)", warning)

    def test_hadoop_fails(self):
        home = self.hadoop("echo 'JAVA_HOME is not set' >&2; exit 1")
        more, warning = hdfs.environment(self.conf, "ada", "", dict(self.bare, HADOOP_HOME=home))
        self.assertNotIn("CLASSPATH", more)
        self.assertRegex(warning, "hadoop classpath --glob: .*: JAVA_HOME is not set; CLASSPATH is not set")

    def test_named_by(self):
        for places, want in ((("hdfs://n/d", ""), True), (("/d", "viewfs://c/d"), True), (("/d", ""), False), (("/hdfs://",), False)):
            self.assertEqual(want, hdfs.named_by(*places), places)


if __name__ == "__main__":
    unittest.main()
