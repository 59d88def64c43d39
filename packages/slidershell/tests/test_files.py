"""Files, folders and the configuration files made from the command's dictionaries."""

import errno
import functools
import hashlib
import http.server
import io
import json
import os
import stat
import tarfile
import threading
import time
import unittest
from unittest import mock
import xml.etree.ElementTree
import zipfile

import harness
from resource_management import *


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class RefusalTest(harness.FolderCase):
    """The system refuses to write: what a resource makes of that."""

    def test_a_resource_says_so_and_what_to_do(self):
        self.write("link", "")
        with tarfile.open("a.tar", "w") as archive:
            archive.add("link", "member")
        for number, why in ((errno.EROFS, "Read-only file system"), (errno.EACCES, "Permission denied"),
                            (errno.EPERM, "Operation not permitted"), (errno.ENOSPC, "No space left on device")):
            remedy = "" if number == errno.ENOSPC else "; write below ${AGENT_WORK_ROOT}"
            for function, path, act, want in (
                    ("os.mkdir", "/hadoop", lambda: Directory("/hadoop/kv", recursive=True),
                     "Directory['/hadoop/kv']: " + why + ": /hadoop" + remedy),
                    ("os.mkdir", "d", lambda: Directory("d"), "Directory['d']: " + why + remedy),
                    ("os.replace", "f.7.new", lambda: File("f", content="x"), "File['f']: " + why + remedy),
                    ("os.replace", "/x/f", lambda: PropertiesFile("f", properties={}),
                     "File['f']: " + why + ": /x/f" + remedy),
                    ("os.symlink", "s", lambda: Link("s", to="/"), "Link['s']: " + why + remedy),
                    ("tarfile.TarFile.makefile", "/x/member", lambda: Tarball("a.tar", location="."),
                     "package a.tar: " + why + ": /x/member" + remedy),
            ):
                with self.subTest(want), mock.patch(function, side_effect=OSError(number, why, path)):
                    with self.assertRaises(Fail) as caught:
                        act()
                    self.assertEqual(str(caught.exception), want)

    def test_a_script_may_catch_it_as_in_slider(self):
        with mock.patch("os.mkdir", side_effect=OSError(errno.EROFS, "Read-only file system", "d")), \
                self.assertRaises(OSError) as caught:
            Directory("d")
        self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.EROFS, "d"))
        with mock.patch("os.mkdir", side_effect=OSError(errno.EACCES, "Permission denied", "d")), \
                self.assertRaises(PermissionError):
            Directory("d")
        Directory("d", ignore_failures=True)

    def test_other_errors_stay_what_they_are(self):
        with mock.patch("os.mkdir", side_effect=FileExistsError(errno.EEXIST, "File exists", "d")), \
                self.assertRaises(FileExistsError):
            Directory("d")


class FileTest(harness.FolderCase):
    def test_content(self):
        self.write("package/files/s", "static")
        self.write("package/templates/t.j2", "port={{ port }}")
        self.env.set_params({"port": 80})
        for content, want in (("text", "text"), (b"bytes", "bytes"), ("ümlaut", "ümlaut"), (lambda: "called", "called"),
                              (StaticFile("s"), "static"), (StaticFile(self.folder + "/package/files/s"), "static"),
                              (Template("t.j2"), "port=80\n"), (InlineTemplate("{{ port }}{{ x }}", x=1), "801\n")):
            File("f", content=content)
            self.assertEqual(self.read("f"), want)
        self.assertEqual(sorted(os.listdir(".")), ["f", "package"])

    def test_without_content_it_is_only_made(self):
        File("f")
        self.assertEqual(self.read("f"), "")
        self.write("f", "kept")
        File("f", mode=0o600)
        self.assertEqual((self.read("f"), mode("f")), ("kept", 0o600))

    def test_mode_and_owner(self):
        File("f", content="x", mode=0o640, owner="nobody", group="nogroup")
        self.assertEqual((mode("f"), os.stat("f").st_uid), (0o640, os.getuid()))
        File("f", content="y")
        self.assertEqual(mode("f"), 0o640)
        for given in ("0755", 0):
            File("f", mode=given)
            self.assertEqual(mode("f"), 0o755)

    def test_an_equal_file_is_not_written_again(self):
        File("f", content="x")
        before = os.stat("f").st_ino
        File("f", content="x")
        self.assertEqual(os.stat("f").st_ino, before)

    def test_replace_and_backup(self):
        self.env.config.backup.path = "kept"
        self.write("f", "old")
        File("f", content="new", replace=False)
        self.assertEqual(self.read("f"), "old")
        File("f", content="new", backup=True)
        self.assertEqual(self.read("f"), "new")
        copies = os.listdir("kept")
        self.assertEqual(len(copies), 1)
        self.assertTrue(copies[0].endswith("-f"))
        self.assertEqual(self.read("kept/" + copies[0]), "old")

    def test_backups_lie_in_the_container(self):
        os.environ["AGENT_WORK_ROOT"] = self.folder
        self.addCleanup(os.environ.pop, "AGENT_WORK_ROOT")
        self.assertEqual(Environment().config.backup.path, self.folder + "/app/tmp/backup")

    def test_a_link_stays(self):
        self.write("real", "old")
        os.symlink("real", "link")
        File("link", content="new")
        self.assertTrue(os.path.islink("link"))
        self.assertEqual(self.read("real"), "new")

    def test_delete(self):
        self.write("f", "")
        File("f", action="delete")
        File("f", action="delete")
        self.assertFalse(os.path.exists("f"))

    def test_refusals(self):
        os.mkdir("d")
        missing = ConfigDictionary({})["log4j"]
        for path, content, want in (("d", None, "it is a folder"), ("gone/f", "x", "the folder gone is missing"),
                                    ("f", 3, "content is int"), ("f", missing, "configuration /log4j is not set"),
                                    ("f", StaticFile("gone"), "package/files/gone: No such file"),
                                    ("f", Template("gone.j2"), "package/templates/gone.j2: No such file")):
            with self.assertRaisesRegex(Fail, want):
                File(path, content=content)
        self.assertFalse(os.path.exists("f"))


class LinkTest(harness.FolderCase):
    def test_a_link_is_made_and_replaced(self):
        self.write("a", "a")
        self.write("b", "b")
        for to in ("a", "b", "b"):
            Link("l", to=to)
            self.assertEqual(os.readlink("l"), to)
        with self.assertLogs("resource_management", "WARNING") as logs:
            Link("dangling", to="gone")
        self.assertIn("gone does not exist", logs.output[0])
        Link(["l", "dangling", "never"], action="delete", to="a")
        self.assertEqual(sorted(os.listdir(".")), ["a", "b", "package"])

    def test_a_hard_one(self):
        self.write("a", "a")
        for _ in range(2):
            Link("h", to="a", hard=True)
        self.assertEqual(os.stat("h").st_ino, os.stat("a").st_ino)

    def test_refusals(self):
        self.write("f", "")
        for name, how, want in (
                ("f", {"to": "package"}, "has that name"), ("l", {"to": "package", "hard": True}, "is no file"),
                ("l", {"to": "gone", "hard": True}, "gone is no file"), ("l", {}, "the argument to is missing")):
            with self.assertRaisesRegex(Fail, want):
                Link(name, **how)
        self.assertFalse(os.path.lexists("l"))


class TarballTest(harness.FolderCase):
    def test_it_is_unpacked_beside_what_is_there(self):
        os.mkdir("into")
        self.write("into/kept", "")
        with tarfile.open("a.tgz", "w:gz") as archive:
            archive.add("package", "p")
        Tarball("a.tgz", location="into")
        self.assertEqual(sorted(os.listdir("into")), ["kept", "p"])

    WHEN = (2001, 2, 3, 4, 5, 6)
    MEMBERS = (("d", 0o555), ("d/open", 0o666), ("d/run", 0o4755), ("ro", 0o444))

    def tar_of(self, path):
        with tarfile.open(path, "w") as archive:
            for name, bits in self.MEMBERS:
                member = tarfile.TarInfo(name)
                member.mode, member.mtime = bits, time.mktime((*self.WHEN, 0, 0, -1))
                member.type, member.size = (tarfile.DIRTYPE, 0) if name == "d" else (tarfile.REGTYPE, 1)
                archive.addfile(member, io.BytesIO(b"x"))

    def zip_of(self, path):
        with zipfile.ZipFile(path, "w") as archive:
            for name, bits in self.MEMBERS:
                member = zipfile.ZipInfo(name + "/" if name == "d" else name, self.WHEN)
                member.create_system, member.external_attr = 3, bits << 16
                archive.writestr(member, "" if name == "d" else "x")

    def test_modes_and_times_are_those_of_tar_and_unzip(self):
        self.addCleanup(os.umask, os.umask(0o022))
        for make, name, opened in ((self.tar_of, "a.tar", 0o644), (self.zip_of, "a.zip", 0o666)):
            make(name)
            into = name + ".d"
            os.mkdir(into)
            Tarball(name, location=into)
            got = {path: mode(os.path.join(into, path)) for path, _ in self.MEMBERS}
            self.assertEqual(got, {"d": 0o755, "d/open": opened, "d/run": 0o755, "ro": 0o444}, name)
            for path in got:
                when = time.localtime(os.stat(os.path.join(into, path)).st_mtime)[:6]
                self.assertEqual(when, self.WHEN, (name, path))

    def test_a_second_time_replaces_files(self):
        for make, name in ((self.tar_of, "a.tar"), (self.zip_of, "a.zip")):
            make(name)
            into = name + ".d"
            os.makedirs(into + "/d")
            before = os.stat(self.write(into + "/ro", "old")).st_ino
            os.link(into + "/ro", into + "/other")  # so that the file's number is not given to the new one
            self.write("elsewhere", "kept")
            os.symlink("../../elsewhere", into + "/d/run")
            if name == "a.tar":
                os.remove(into + "/d/run")  # a link that leads out of the folder is refused of a tar
            Tarball(name, location=into)
            self.assertNotEqual(os.stat(into + "/ro").st_ino, before, name)
            self.assertEqual([self.read(into + "/" + path) for path in ("ro", "d/run", "other")], ["x", "x", "old"])
            self.assertEqual(self.read("elsewhere"), "kept")


class DownloadTest(harness.FolderCase):
    def test_content_of_a_url(self):
        url = "file://" + self.folder + "/" + self.write("f", "x")
        File("got", content=DownloadSource(url, md5sum=hashlib.md5(b"x").hexdigest()))
        self.assertEqual(self.read("got"), "x")
        for source, want in (
                (DownloadSource(url, md5sum="00"), "md5sum: want 00, got "),
                (DownloadSource(url + "x"), "No such file"), (DownloadSource("what"), "unknown url")):
            with self.assertRaisesRegex(Fail, want):
                File("bad", content=source)
        self.assertFalse(os.path.exists("bad"))


class DirectoryTest(harness.FolderCase):
    def test_create(self):
        Directory("a", mode=0o700, owner="nobody")
        self.assertEqual(mode("a"), 0o700)
        Directory("a")
        with self.assertRaisesRegex(Fail, "the folder b is missing"):
            Directory("b/c")
        Directory("b/c", recursive=True)
        Directory(["l1", "l2"])
        self.assertTrue(os.path.isdir("b/c") and os.path.isdir("l1") and os.path.isdir("l2"))
        self.write("f", "")
        with self.assertRaisesRegex(Fail, "a file of that name"):
            Directory("f")

    def test_content_is_a_tree(self):
        os.makedirs("from/sub")
        self.write("from/f", "1")
        self.write("from/sub/g", "2")
        os.symlink("f", "from/link")
        os.symlink("gone", "from/dangling")
        os.symlink("..", "from/sub/round")
        for _ in range(2):
            Directory("to", content="from")
            self.assertEqual((self.read("to/f"), self.read("to/sub/g"), self.read("to/link")), ("1", "2", "1"))
        Directory("other", content="gone")
        self.assertEqual(os.listdir("other"), [])

    def test_delete(self):
        os.makedirs("a/b")
        os.symlink("package", "link")
        Directory(["a", "link", "gone"], action="delete")
        self.assertEqual(os.listdir("."), ["package"])
        self.write("f", "")
        with self.assertRaisesRegex(Fail, "it is no folder"):
            Directory("f", action="delete")


class ConfigurationFilesTest(harness.FolderCase):
    SITE = {"b": "true", "a": "x<&>\"y", "port": "8080"}

    def test_properties(self):
        Directory("conf")
        PropertiesFile("p.properties", dir="conf", properties=ConfigDictionary(self.SITE), mode=0o600)
        want = "# Generated by muster.\na=x<&>\"y\nb=true\nport=8080\n"
        self.assertEqual((self.read("conf/p.properties"), mode("conf/p.properties")), (want, 0o600))
        PropertiesFile("conf/q", properties={})
        self.assertEqual(self.read("conf/q"), "# Generated by muster.\n")

    def test_xml(self):
        Directory("conf")
        XmlConfig("site.xml", conf_dir="conf", configurations=ConfigDictionary(self.SITE), mode=0o600)
        tree = xml.etree.ElementTree.parse("conf/site.xml").getroot()
        self.assertEqual((tree.tag, mode("conf/site.xml")), ("configuration", 0o600))
        self.assertEqual({p.findtext("name"): p.findtext("value") for p in tree.findall("property")}, self.SITE)

    def test_missing_configurations(self):
        missing = ConfigDictionary({})["hbase-site"]
        for make in (lambda: XmlConfig("x", configurations=missing), lambda: PropertiesFile("x", properties=missing)):
            with self.assertRaisesRegex(Fail, "configuration /hbase-site is not set"):
                make()
        for make in (lambda: XmlConfig("x"), lambda: PropertiesFile("x")):
            self.assertRaisesRegex(Fail, "missing", make)
        self.assertFalse(os.path.exists("x"))

    def test_template_config(self):
        self.env.set_params({"port": 1})
        self.write("package/templates/a.conf.j2", "port {{ port }}\n")
        self.write("package/templates/a.conf-TAG.j2", "tag {{ port }} {{ max(1, 2) }}")
        TemplateConfig("a.conf", mode=0o600)
        self.assertEqual((self.read("a.conf"), mode("a.conf")), ("port 1\n", 0o600))
        TemplateConfig(self.folder + "/a.conf", template_tag="TAG", extra_imports=[max])
        self.assertEqual(self.read("a.conf"), "tag 1 2\n")


class HdfsDirectoryTest(harness.FolderCase):
    def test_local_folders(self):
        make = functools.partial(HdfsDirectory, hdfs_user="hdfs", security_enabled=False)
        make(self.folder + "/a/b", action="create_delayed", owner="hbase")
        make("file://{}/c%20d".format(self.folder), action="create_delayed", mode=0o711)
        self.assertEqual(os.listdir("."), ["package"])
        make(None, action="create")
        self.assertTrue(os.path.isdir("a/b"))
        self.assertEqual(mode("c d"), 0o711)

    def test_modes_of_all_below(self):
        os.makedirs("a/b")
        self.write("a/b/f", "")
        HdfsDirectory(self.folder + "/a", action="create", mode=0o750, recursive_chmod=True)
        self.assertEqual([mode(path) for path in ("a", "a/b", "a/b/f")], [0o750] * 3)

    def test_other_stores(self):
        self.write("core-site.xml", "<configuration><property><name>fs.defaultFS</name><value>hdfs://nn:8020/</value>"
                   "</property></configuration>")
        for name, conf_dir, want in (
                ("hdfs://nn/apps", None, "hdfs://nn/apps: no agent to ask"), ("s3://nn/apps", None, "s3://nn/apps is no local path"),
                ("/apps", self.folder, "hdfs://nn:8020/apps: no agent to ask"), ("apps", None, "want an absolute path"),
                ("file://host/apps", None, "is no local path")):
            with self.assertRaisesRegex(Fail, want):
                HdfsDirectory(name, action="create", conf_dir=conf_dir)
        HdfsDirectory("file://{}/a".format(self.folder), action="create", conf_dir=self.folder)
        self.assertTrue(os.path.isdir("a"))

    def test_without_conf_dir_the_hosts_hadoop_says_which_store(self):
        os.mkdir("conf")
        self.write("conf/core-site.xml", "<configuration><property><name>fs.defaultFS</name><value>hdfs://nn</value>"
                   "</property></configuration>")
        self.variable("HADOOP_CONF_DIR", self.folder + "/conf")
        with self.assertRaisesRegex(Fail, "hdfs://nn/apps: no agent to ask"):
            HdfsDirectory("/apps", action="create")
        HdfsDirectory(self.folder + "/a", action="create", conf_dir=self.folder)
        self.assertTrue(os.path.isdir("a"))

    def test_the_agent_makes_folders_of_hdfs(self):
        asked, answers = [], [204, 422]

        class Agent(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked.append((self.path, json.loads(body.decode())))
                code = answers.pop(0)
                self.send_response(code)
                self.end_headers()
                if code != 204:
                    self.wfile.write(b"create hdfs://nn/apps: permission denied")

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Agent) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            os.environ["MUSTER_SLIDER_URL"] = "http://127.0.0.1:{}/secret".format(server.server_port)
            try:
                HdfsDirectory("hdfs://nn/apps", action="create", mode=0o711, recursive_chmod=True, owner="hbase")
                with self.assertRaisesRegex(Fail, "permission denied"):
                    HdfsDirectory("hdfs://nn/apps", action="create")
            finally:
                del os.environ["MUSTER_SLIDER_URL"]
                server.shutdown()
        self.assertEqual(asked, [("/secret/muster/folders", {"url": "hdfs://nn/apps", "mode": "711", "below": True}),
                                 ("/secret/muster/folders", {"url": "hdfs://nn/apps", "mode": "", "below": False})])


if __name__ == "__main__":
    unittest.main()
