"""The parts of the program one by one."""

import gzip
import hashlib
import io
import json
import os
import random
import socket
import tempfile
import threading
import unittest
from array import array
from unittest import mock

import gang  # noqa: F401  (finds the program's modules)
import checkpoint
import cluster
import digits
import legacy
import model
import source
import wire
from shard import Shard


class ClusterTest(unittest.TestCase):
    def test_places(self):
        plain = {"ps": ["a:1", "b:2"], "worker": ["c:3", "d:4"]}
        led = {"ps": ["a:1"], "chief": ["m:9"], "worker": ["c:3", "d:4"]}
        for groups, task, role, index, address in (
                (plain, ("ps", 1), "ps", 1, ("b", 2)),
                (plain, ("worker", 0), "worker", 0, ("c", 3)),
                (plain, ("worker", "1"), "worker", 1, ("d", 4)),
                (led, ("chief", 0), "worker", 0, ("m", 9)),
                (led, ("worker", 0), "worker", 1, ("c", 3)),
                (led, ("worker", 1), "worker", 2, ("d", 4)),
                ({"ps": ["a:1"], "worker": ["[::1]:7"]}, ("worker", 0), "worker", 0, ("::1", 7))):
            with self.subTest(task=task):
                me = cluster.parse(json.dumps({"cluster": groups, "task": {"type": task[0], "index": task[1]}}))
                self.assertEqual((role, index, address), (me.role, me.index, me.address))

    def test_refusals(self):
        groups = {"ps": ["a:1"], "worker": ["c:3"]}
        for text in ("", "[]", "{}", "{", json.dumps({"cluster": groups}),
                     json.dumps({"cluster": groups, "task": {"type": "worker", "index": 1}}),
                     json.dumps({"cluster": groups, "task": {"type": "ps", "index": -1}}),
                     json.dumps({"cluster": groups, "task": {"type": "evaluator", "index": 0}}),
                     json.dumps({"cluster": {"ps": ["a"], "worker": ["c:3"]}, "task": {"type": "ps", "index": 0}}),
                     json.dumps({"cluster": {"worker": ["c:3"]}, "task": {"type": "worker", "index": 0}})):
            with self.subTest(text=text), self.assertRaises(cluster.ClusterError):
                cluster.parse(text)

    def test_long_text_comes_from_a_file(self):
        text = json.dumps({"cluster": {"ps": ["a:1"], "worker": ["c:3"]}, "task": {"type": "ps", "index": 0}})
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            self.assertEqual("ps", cluster.from_environment({"TF_CONFIG_FILE": file.name}).role)
        with self.assertRaises(cluster.ClusterError):
            cluster.from_environment({})


class DigitsTest(unittest.TestCase):
    def test_all_images_are_there(self):
        images = source.read("", "", 0, 1)
        training, held_back = images.training, images.held_back
        self.assertEqual((1438, 359), (len(training), len(held_back)))
        for pixels, digit in training + held_back:
            self.assertEqual(64, len(pixels))
            self.assertTrue(0 <= min(pixels) and max(pixels) <= 1)
            self.assertIn(digit, range(10))

    def test_shards_are_a_partition(self):
        images = list(range(1438))
        for count in (1, 3, 7):
            parts = [digits.shard(images, index, count) for index in range(count)]
            self.assertEqual(images, sorted(sum(parts, [])))
        self.assertEqual([5, 6], digits.shard([5, 6], 3, 4))


class SourceTest(unittest.TestCase):
    """Ten images in two files, the first of them packed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with gzip.open(digits.FILE) as file:
            self.lines = file.read().splitlines(True)[:10]
        self.paths = [os.path.join(self.folder, name) for name in ("a.csv.gz", "b.csv")]
        for path, how, lines in ((self.paths[0], gzip.open, self.lines[:6]), (self.paths[1], open, self.lines[6:])):
            with how(path, "wb") as file:
                file.write(b"".join(lines))
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)

    def assert_all(self, images):
        self.assertEqual((8, 2, 10), (len(images.training), len(images.held_back), images.count))
        self.assertEqual(hashlib.sha256(b"".join(self.lines)).hexdigest(), images.digest)

    def test_folder(self):
        self.assert_all(source.read(self.folder, "", 1, 2))

    def test_list(self):
        told = json.dumps({"data": self.paths, "other": []})
        with mock.patch.dict(os.environ, INPUT_FILE_LIST=told):
            self.assert_all(source.read("data", "false", 0, 1))
            self.assertEqual(0, source.read("other", "false", 0, 1).count)
            with self.assertRaises(source.Unread):
                source.read("third", "false", 0, 1)
        with open("inputFileList.txt", "w") as file:
            file.write(told + "\n")
        self.assert_all(source.read("data", "false", 0, 1))

    def test_list_of_another_machines_files(self):
        told = json.dumps({"data": ["away://host" + path for path in self.paths]})
        with open("reader", "w") as file:
            file.write('#!/bin/sh\nfor f; do cat "${f#away://host}"; done\n')
        os.chmod("reader", 0o755)
        with mock.patch.dict(os.environ, INPUT_FILE_LIST=told):
            self.assert_all(source.read("data", "./reader", 0, 1))
            for reader in ("./absent", "false"):
                with self.assertRaises(source.Unread):
                    source.read("data", reader, 0, 1)

    def test_stdin(self):
        with mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(b"".join(self.lines)))):
            self.assert_all(source.read("-", "", 0, 1))

    def test_none(self):
        self.assertEqual(0, source.read("data", "false", 3, 4).count)

    def test_what_is_no_image(self):
        for text in ("1,2\n", "17," * 64 + "1\n", "1," * 64 + "10\n", "-1," * 64 + "1\n", "x\n", "\n"):
            with self.subTest(text=text):
                with open("bad", "w") as file:
                    file.write(text)
                with self.assertRaisesRegex(ValueError, "bad|, line "):
                    source.read(self.folder, "", 0, 1)


class LegacyTest(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            left = legacy.Legacy(os.path.join(folder, "model"))
            left.tell(25, 1.25)
            with open(os.path.join(folder, "model", "history.csv")) as file:
                self.assertEqual("25,1.2500\n", file.read())
            params = model.initial(1)
            left.model(params, 0.5, 50)
            left.close()
            with open(os.path.join(folder, "model", "model.json")) as file:
                self.assertEqual({"step": 50, "accuracy": 0.5, "params": list(params)}, json.load(file))

    def test_no_folder(self):
        left = legacy.Legacy("")
        left.tell(25, 1.25)
        left.model([], 0.5, 50)
        left.close()


class ModelTest(unittest.TestCase):
    def test_slices_cover_the_vector_once(self):
        for count in (1, 2, 3, 7, model.SIZE, model.SIZE + 5):
            ends = [model.bounds(index, count) for index in range(count)]
            self.assertEqual([0] + [end for _, end in ends], [first for first, _ in ends] + [model.SIZE])

    def test_initial_parameters_depend_on_the_seed_alone(self):
        self.assertEqual(model.initial(4), model.initial(4))
        self.assertNotEqual(model.initial(4), model.initial(5))

    def test_gradient_is_the_slope(self):
        batch, params, nudge = source.read("", "", 0, 1).training[:8], model.initial(3), 1e-5
        _, gradient = model.Net(params).gradient(batch)
        for place in random.Random(1).sample(range(model.SIZE), 40) + [model.SIZE - 1]:
            up, down = params[:], params[:]
            up[place] += nudge
            down[place] -= nudge
            slope = (model.Net(up).gradient(batch)[0] - model.Net(down).gradient(batch)[0]) / (2 * nudge)
            self.assertAlmostEqual(slope, gradient[place], places=6)


class WireTest(unittest.TestCase):
    def setUp(self):
        self.here, self.there = socket.socketpair()
        self.addCleanup(self.here.close)
        self.addCleanup(self.there.close)

    def test_round_trip(self):
        vector = array("d", [0.0, -1.5, 1e300])
        wire.send(self.here, {"verb": "push", "step": 7}, wire.pack(vector))
        wire.send(self.here, {"verb": "pull"})
        header, body = wire.receive(self.there)
        self.assertEqual(("push", 7), (header["verb"], header["step"]))
        self.assertEqual(vector, wire.unpack(body, 3))
        self.assertEqual(("pull", b""), (wire.receive(self.there)[0]["verb"], b""))

    def test_closed_connection(self):
        self.here.sendall(b"\0\0\0\5ab")
        self.here.close()
        with self.assertRaises(ConnectionError):
            wire.receive(self.there)

    def test_malformed(self):
        for sent in (b"GET / HTTP/1.0\r\n", b"\0\0\0\2{}", b"\0\0\0\2xx", b"\0\0\0\1\xff", b"\0\0\0\2[]",
                     b'\0\0\0\x0d{"bytes": -1}', b'\0\0\0\x15{"bytes": 9999999999}'):
            here, there = socket.socketpair()
            with self.subTest(sent=sent), here, there, self.assertRaises(wire.Malformed):
                here.sendall(sent)
                wire.receive(there)

    def test_wrong_length(self):
        with self.assertRaises(wire.Malformed):
            wire.unpack(b"\0" * 9, 1)


class CheckpointTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.warnings = []

    def write(self, step, params=(1.0, 2.0), workers=(0, 2)):
        checkpoint.write(self.folder, checkpoint.Checkpoint(step, array("d", params), set(workers)))

    def newest(self, size=2):
        found = checkpoint.newest(self.folder, size, self.warnings.append)
        return found and (found.step, list(found.params), sorted(found.workers))

    def spoil(self, step, change):
        path = os.path.join(self.folder, "ckpt-{}.json".format(step))
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(change(content))

    def test_newest_of_several(self):
        self.assertIsNone(self.newest())
        for step in (9, 10, 100):
            self.write(step, (step, 2.0))
        self.assertEqual((100, [100.0, 2.0], [0, 2]), self.newest())
        self.assertEqual([], self.warnings)

    def test_old_ones_are_dropped(self):
        for step in (50, 100, 150, 200, 250):
            self.write(step)
        self.assertEqual(["ckpt-150.json", "ckpt-200.json", "ckpt-250.json"], sorted(os.listdir(self.folder)))

    def test_damaged_ones_are_passed_over(self):
        for change in (lambda content: content[:-40], lambda content: b"", lambda content: b"[]",
                       lambda content: b"\xff" + content,
                       lambda content: content.replace(b'"params": "AAAAAAAA', b'"params": "AAAAAAAB')):
            with self.subTest():
                self.write(50)
                self.write(100)
                self.spoil(100, change)
                self.assertEqual(50, self.newest()[0])
                self.assertEqual(1, len(self.warnings))
                self.assertIn("ckpt-100.json is passed over", self.warnings.pop())

    def test_of_another_model(self):
        self.write(50)
        self.assertIsNone(self.newest(size=3))
        self.assertEqual(1, len(self.warnings))

    def test_other_files_are_no_checkpoints(self):
        for name in (".ckpt-x.tmp", "ckpt-.json", "ckpt-5.json.tmp", "checkpoint"):
            open(os.path.join(self.folder, name), "w").close()
        self.assertIsNone(self.newest())
        self.assertEqual([], self.warnings)

    def test_written_whole_or_not_at_all(self):
        real = os.fsync

        def broken(_):
            raise OSError(28, "No space left on device")

        self.write(50)
        os.fsync = broken
        try:
            with self.assertRaises(OSError):
                self.write(100)
        finally:
            os.fsync = real
        self.assertEqual(["ckpt-50.json"], os.listdir(self.folder))

    def test_sweep_takes_only_what_was_left_half_written(self):
        self.write(50)
        for name in (".ckpt-100-7.tmp", "notes.tmp"):
            open(os.path.join(self.folder, name), "w").close()
        checkpoint.sweep(self.folder)
        self.assertEqual(["ckpt-50.json", "notes.tmp"], sorted(os.listdir(self.folder)))


class ShardTest(unittest.TestCase):
    def shard(self, counts=True, steps=4, every=2):
        return Shard(array("d", [1.0, 1.0]), 0, (), steps, every, counts)

    def push(self, shard, times=1, step=0):
        for _ in range(times):
            shard.push(array("d", [1.0, -1.0]), 0.5, step)

    def test_push_moves_down_the_gradient(self):
        shard = self.shard()
        self.assertEqual((1, array("d", [0.5, 1.5])), shard.push(array("d", [1.0, -1.0]), 0.5, 0))

    def test_nothing_is_pushed_beyond_the_last_step(self):
        shard = self.shard()
        self.push(shard, 6)
        self.assertEqual((4, array("d", [-1.0, 3.0])), shard.pull())

    def test_other_servers_take_the_step_from_the_worker(self):
        shard = self.shard(counts=False)
        self.push(shard, 1, step=17)
        self.assertEqual(17, shard.step)

    def test_checkpoints_fall_due_at_multiples(self):
        shard = self.shard(steps=5)
        self.push(shard, 2)
        self.assertEqual((2, array("d", [0.0, 2.0]), set()), shard.take())
        self.push(shard, 3)
        self.assertEqual(5, shard.take()[0])

    def test_closing_asks_for_what_is_unsaved(self):
        shard = self.shard(every=100, steps=100)
        self.push(shard, 3)
        shard.close()
        self.assertEqual(3, shard.take()[0])
        self.assertIsNone(shard.take())

    def test_closing_after_the_last_checkpoint_asks_for_nothing(self):
        shard = self.shard()
        self.push(shard, 4)
        shard.saved(shard.take()[0])
        shard.close()
        self.assertIsNone(shard.take())

    def test_finish_waits_for_the_last_checkpoint(self):
        shard = self.shard()
        self.assertEqual((0, False), shard.finish(60))
        self.push(shard, 4)
        self.assertEqual((4, False), shard.finish(0))
        waiter = threading.Thread(target=lambda: shard.saved(shard.take()[0]))
        waiter.start()
        self.assertEqual((4, True), shard.finish(60))
        waiter.join()

    def test_who_joined_is_known(self):
        shard = self.shard()
        self.assertEqual((0, False), shard.greet(1))
        self.assertEqual((0, True), shard.greet(1))


if __name__ == "__main__":
    unittest.main()
