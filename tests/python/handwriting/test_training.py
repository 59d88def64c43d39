"""Whole clusters as processes: they learn, and they come back from what kills them."""

import glob
import json
import os
import re
import signal
import socket
import tempfile
import unittest

from gang import FILES, Gang

STEP = r"step (\d+) loss \d+\.\d+"
CHECKPOINT = r"checkpoint step (\d+)"


class TrainingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def gang(self, ps, workers, *arguments, **options):
        gang = Gang(self.folder, ps, workers, *arguments, **options)
        self.addCleanup(gang.close)
        return gang

    def assert_learnt(self, leader):
        self.assertEqual(0, leader.wait_exit(), leader.lines)
        found = leader.match(r"accuracy (\d\.\d{4})")
        self.assertTrue(found, leader.lines)
        self.assertGreaterEqual(float(found.group(1)), 0.93)

    def checkpoints(self):
        return sorted(int(re.search(r"ckpt-(\d+)\.json$", path).group(1))
                      for path in glob.glob(os.path.join(self.folder, "ckpt-*.json")))

    def test_learns_with_several_seeds(self):
        for seed in ("1", "2", "3"):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as self.folder:
                members = self.gang(1, 3, "--steps", "1000", "--seed", seed).start_all()
                self.assert_learnt(members["worker"][0])
                for worker in members["worker"][1:]:
                    self.assertEqual(0, worker.wait_exit(), worker.lines)
                    self.assertFalse(worker.match("accuracy .*"))
                    self.assertTrue(worker.match("reporter progress:1.00"))
                self.assertEqual(0, members["ps"][0].kill(signal.SIGTERM))
                self.assertEqual([900, 950, 1000], self.checkpoints())

    def test_any_number_of_servers_and_a_chief(self):
        members = self.gang(3, 2, "--steps", "900", chief=True).start_all()
        self.assert_learnt(members["chief"][0])
        self.assertEqual(0, members["worker"][0].wait_exit())
        for server in members["ps"]:
            self.assertEqual(0, server.kill(signal.SIGTERM))
        self.assertEqual(900, self.checkpoints()[-1])

    def test_one_server_and_one_worker(self):
        members = self.gang(1, 1, "--steps", "700").start_all()
        self.assert_learnt(members["worker"][0])

    def test_killed_server_goes_on_from_its_checkpoint(self):
        gang = self.gang(1, 3, "--steps", "900", "--pace", "0.003")
        members = gang.start_all()
        members["ps"][0].wait_line(CHECKPOINT, at_least=200)
        members["ps"][0].kill()
        newest = self.checkpoints()[-1]
        again = gang.start("ps", 0)
        self.assertEqual(newest, int(again.wait_line(r"restored from step (\d+)").group(1)))
        for worker in members["worker"]:
            back = int(worker.wait_line(r"reconnected to ps 0 at step (\d+)").group(1))
            self.assertGreaterEqual(back, newest)
        self.assert_learnt(members["worker"][0])
        for worker in members["worker"][1:]:
            self.assertEqual(0, worker.wait_exit(), worker.lines)
        self.assertEqual(0, again.kill(signal.SIGTERM))

    def test_each_of_two_servers_killed(self):
        gang = self.gang(2, 2, "--steps", "900", "--pace", "0.003")
        members = gang.start_all()
        for index in (1, 0):
            members["ps"][0].wait_line(CHECKPOINT, at_least=100)
            members["ps"][index].kill()
            newest = self.checkpoints()[-1]
            members["ps"][index] = gang.start("ps", index)
            found = members["ps"][index].wait_line(r"restored from step (\d+)")
            self.assertEqual(newest, int(found.group(1)))
        self.assert_learnt(members["worker"][0])

    def test_killed_worker_resumes_where_the_others_are(self):
        gang = self.gang(1, 3, "--steps", "900", "--pace", "0.003")
        members = gang.start_all()
        for index in (0, 2):
            heard = int(members["worker"][index].wait_line(STEP, at_least=150).group(1))
            members["worker"][index].kill()
            members["worker"][index] = gang.start("worker", index)
            found = members["worker"][index].wait_line(r"resuming at step (\d+)")
            self.assertGreaterEqual(int(found.group(1)), heard)
        self.assert_learnt(members["worker"][0])
        self.assertEqual(0, members["worker"][2].wait_exit())

    def test_everybody_killed_and_started_again(self):
        gang = self.gang(2, 2, "--steps", "800", "--pace", "0.003")
        members = gang.start_all()
        members["ps"][0].wait_line(CHECKPOINT, at_least=200)
        for process in gang.all:
            process.kill()
        newest = self.checkpoints()[-1]
        members = gang.start_all()
        for server in members["ps"]:
            self.assertEqual(newest, int(server.wait_line(r"restored from step (\d+)").group(1)))
        for worker in members["worker"]:
            self.assertGreaterEqual(int(worker.wait_line(r"resuming at step (\d+)").group(1)), newest)
        self.assert_learnt(members["worker"][0])

    def test_another_number_of_servers_reads_the_same_checkpoint(self):
        gang = self.gang(1, 1, "--steps", "200")
        members = gang.start_all()
        self.assertEqual(0, members["worker"][0].wait_exit())
        gang.close()
        members = self.gang(3, 1, "--steps", "800").start_all()
        for server in members["ps"]:
            server.wait_line("restored from step 200")
        self.assert_learnt(members["worker"][0])

    def test_finished_run_started_again_only_measures(self):
        gang = self.gang(1, 1, "--steps", "600")
        first = gang.start_all()["worker"][0]
        self.assert_learnt(first)
        gang.close()
        members = gang.start_all()
        self.assert_learnt(members["worker"][0])
        members["worker"][0].wait_line("resuming at step 600")
        self.assertEqual(first.match("accuracy .*").group(), members["worker"][0].match("accuracy .*").group())

    def test_terminated_server_saves_what_it_has(self):
        gang = self.gang(2, 1, "--steps", "100000", "--checkpoint-every", "100000")
        members = gang.start_all()
        members["worker"][0].wait_line(STEP, at_least=50)
        self.assertEqual(-signal.SIGTERM, members["worker"][0].kill(signal.SIGTERM))
        self.assertTrue(members["worker"][0].match(r"stopped at step \d+"))
        for server in members["ps"]:
            server.popen.send_signal(signal.SIGTERM)
        for server in members["ps"]:
            self.assertEqual(0, server.wait_exit(), server.lines)
        told = int(members["ps"][0].match(r"stopping at step (\d+)").group(1))
        self.assertEqual([told], self.checkpoints())

    def test_server_that_stays_away_ends_the_worker(self):
        worker = self.gang(1, 1, "--patience", "0.3").start("worker", 0)
        self.assertEqual(1, worker.wait_exit())
        self.assertTrue(worker.match(r"train\.py: ps 0 at 127\.0\.0\.1:\d+ has been away for 0\.3 s: .*"), worker.lines)

    def test_taken_port_is_named(self):
        gang = self.gang(1, 1)
        host, port = gang.cluster["ps"][0].split(":")
        with socket.socket() as taken:
            taken.bind((host, int(port)))
            taken.listen()
            server = gang.start("ps", 0)
            self.assertEqual(1, server.wait_exit())
        self.assertTrue(server.match(r".*Address already in use.*"), server.lines)

    def test_stranger_does_not_disturb_a_server(self):
        gang = self.gang(1, 1, "--steps", "600")
        server = gang.start("ps", 0)
        server.wait_line("listening on .*")
        host, port = gang.cluster["ps"][0].split(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            server.wait_line("dropped 127.0.0.1: .*")
            self.assertEqual(b"", stranger.recv(1))
        self.assert_learnt(gang.start("worker", 0))

    def test_without_tf_config(self):
        gang = self.gang(1, 1)
        gang.cluster = {}
        worker = gang.start("worker", 0)
        self.assertEqual(1, worker.wait_exit())
        self.assertEqual(["train.py: TF_CONFIG names 0 ps and 0 workers: at least one of each is needed"], worker.lines)

    def test_leaves_nothing_beside_its_source(self):
        self.gang(1, 1, "--patience", "0").start("worker", 0).wait_exit()
        self.assertFalse(os.path.exists(os.path.join(FILES, "__pycache__")))


if __name__ == "__main__":
    unittest.main()
