"""A parameter server: keeps a shard, answers workers, and as server 0 writes checkpoints."""

import os
import socket
import socketserver
import threading
import time
from array import array

import checkpoint
import model
import wire
from say import note, say
from shard import Shard

# Seconds: what a worker waits at most for the last checkpoint; what the other servers
# linger on TERM so that server 0 can still copy their shards; the pause before a
# checkpoint that could not be written is tried again; each wait for another server.
FINISH = 20
LINGER = 1
AGAIN = 0.5
ANSWER = 10


def serve(cluster, options, stopped):
    """Serves until the event stopped is set, then writes a last checkpoint."""
    os.makedirs(options.checkpoint_dir, exist_ok=True)
    if cluster.index == 0:
        checkpoint.sweep(options.checkpoint_dir)
    shard = _restore(cluster, options)
    listener = _listen(cluster, shard)
    say("listening on {}:{}".format(*cluster.address))
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    saver = threading.Thread(target=_save_when_due, daemon=True,
                             args=(cluster, options.checkpoint_dir, shard, stopped))
    if cluster.index == 0:
        saver.start()
    # Python acts on a signal when its main thread runs: it has to, for another thread may have taken the signal.
    while not stopped.wait(1):
        pass
    say("stopping at step {}".format(shard.step))
    shard.close()
    # The listener goes on answering meanwhile: server 0 may still want this shard's copy.
    if cluster.index == 0:
        saver.join()
    else:
        shard.wait_copied(LINGER)


def _restore(cluster, options):
    found = checkpoint.newest(options.checkpoint_dir, model.SIZE, note)
    if found:
        say("restored from step {}".format(found.step))
    else:
        say("starting at step 0")
        found = checkpoint.Checkpoint(0, model.initial(options.seed), ())
    first, end = model.bounds(cluster.index, len(cluster.ps))
    return Shard(found.params[first:end], found.step, found.workers, options.steps,
                 options.checkpoint_every, counts=cluster.index == 0)


def _listen(cluster, shard):
    host, port = cluster.address
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]

    class Listener(socketserver.ThreadingTCPServer):
        address_family = family
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 128

    Listener.block_on_close = False
    return Listener(where[:2], _conversation(cluster, shard))


def _conversation(cluster, shard):
    first, end = model.bounds(cluster.index, len(cluster.ps))

    class Conversation(socketserver.BaseRequestHandler):
        """One peer's connection: requests are answered until it hangs up."""

        def handle(self):
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while True:
                    wire.send(self.request, *self.answer(*wire.receive(self.request)))
            except (wire.Malformed, KeyError, TypeError, ValueError) as err:
                note("dropped {}: {!r}".format(self.client_address[0], err))
            except OSError:
                pass  # the peer has gone; if it lives it will connect again

        def answer(self, request, body):
            verb = request["verb"]
            if verb == "hello":
                return self.hello(request), b""
            if verb == "push":
                gradient = wire.unpack(body, end - first)
                return self.vector(shard.push(gradient, float(request["rate"]), int(request["step"])))
            if verb == "pull":
                return self.vector(shard.pull())
            if verb == "copy":
                return self.vector(shard.copy())
            if verb == "finish":
                step, saved = shard.finish(FINISH)
                return {"step": step, "saved": saved}, b""
            raise wire.Malformed("verb {!r}".format(verb))

        def hello(self, request):
            if (request["size"], request["servers"], request["server"]) != (
                    model.SIZE, len(cluster.ps), cluster.index):
                return {"error": "this is ps {} of {} for {} parameters".format(
                    cluster.index, len(cluster.ps), model.SIZE)}
            step, known = shard.greet(int(request["worker"]))
            return {"step": step, "known": known}

        @staticmethod
        def vector(answer):
            step, params = answer
            return {"step": step}, wire.pack(params)

    return Conversation


def _save_when_due(cluster, folder, shard, stopped):
    while True:
        due = shard.take()
        if due is None:
            return
        step, own, workers = due
        while not _save(cluster, folder, step, own, workers):
            # Whoever stops this server does not wait for a peer that has gone already.
            if stopped.is_set():
                break
            time.sleep(AGAIN)
        else:
            shard.saved(step)
            say("checkpoint step {}".format(step))


def _save(cluster, folder, step, own, workers):
    try:
        params = own + _others(cluster)
        checkpoint.write(folder, checkpoint.Checkpoint(step, params, workers))
        return True
    except (OSError, wire.Malformed) as err:
        note("checkpoint of step {} not written: {}".format(step, err))
        return False


def _others(cluster):
    """The parameters that the other servers hold, in order."""
    rest = array("d")
    for index, address in enumerate(cluster.ps[1:], 1):
        first, end = model.bounds(index, len(cluster.ps))
        try:
            with wire.connect(address, ANSWER) as sock:
                wire.send(sock, {"verb": "copy"})
                _, body = wire.receive(sock)
        except OSError as err:
            raise OSError("ps {}: {}".format(index, err))
        rest.extend(wire.unpack(body, end - first))
    return rest
