# SPDX-License-Identifier: GPL-2.0-or-later
"""Listeners (C24), clients that go away (C19), limits, methods."""

import fcntl
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import time

from daemonbed import CSTATED, PATIENCE, DaemonTest, descriptors, main, until


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sanitized():
    """A sanitizer's shadow is no memory of ours."""
    with open(CSTATED, "rb") as f:
        return b"__asan_init" in f.read()


class Listeners(DaemonTest):
    """C24."""

    def arguments(self, *listen):
        args = ["--config", os.devnull, "--db", self.db]
        for l in listen:
            args += ["--listen", l]
        return args

    def test_port_taken(self):
        """One listener that fails is enough: it ends, with no READY before."""
        port = free_port()
        with socket.socket() as s:
            s.bind(("127.0.0.1", port))
            s.listen()
            said = self.refuses(*self.arguments(self.sock, "127.0.0.1:%d" % port))
        self.assertIn("the port is taken", said)
        self.assertFalse(os.path.exists(self.sock))
        self.assertFalse(os.path.exists(self.db))

    def test_port_taken_on_one_family(self):
        port = free_port()
        with socket.socket() as s:
            s.bind(("127.0.0.1", port))
            s.listen()
            said = self.refuses(*self.arguments("localhost:%d" % port))
        self.assertIn("the port is taken", said)

    def test_loopback(self):
        port = free_port()
        p = self.start("--listen", "localhost:%d" % port)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
            s.sendall(b"GET /api/v1/status HTTP/1.0\r\n\r\n")
            self.assertTrue(s.recv(100).startswith(b"HTTP/1."))
        self.assertEqual(self.stop(p), 0)

    def test_without_ipv6(self):
        """A name with addresses of both families, and no IPv6 in the kernel's sense: IPv4 alone serves."""
        prepare = "set -e; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo up"
        if not os.path.exists("/proc/sys/net/ipv6"):
            prepare = "set -e; ip link set lo up"
        if subprocess.run(["unshare", "-n", "bash", "-c", prepare], capture_output=True).returncode:
            self.skipTest("needs root, unshare -n and ip(8)")
        log = open(self.log, "ab")
        p = subprocess.Popen(["unshare", "-n", "bash", "-c", prepare + '; exec "$0" "$@"', CSTATED, "--config", os.devnull, "--db", self.db,
                              "--listen", self.sock, "--listen", "localhost:9290", "--listen", "*:9291", "--interval", "100ms"],
                             stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.running.append(p)
        self.wait_ready(p)
        with open("/proc/%d/net/tcp" % p.pid) as f:
            listening = {l.split()[1] for l in f.readlines()[1:] if l.split()[3] == "0A"}
        self.assertEqual(listening, {"0100007F:%04X" % 9290, "00000000:%04X" % 9291})
        self.assertEqual(self.stop(p), 0)

    def test_mode_from_birth(self):
        for mask in (0o000, 0o777, 0o027):
            p = self.start(umask=mask)
            self.assertEqual(stat.S_IMODE(os.stat(self.sock).st_mode), 0o660)
            self.assertEqual(self.stop(p), 0)
            for name in os.listdir(self.dir):
                if name.startswith("idle.db"):
                    os.unlink(os.path.join(self.dir, name))

    def test_stale_socket(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.sock)
        self.assertTrue(os.path.exists(self.sock))
        self.start()

    def test_live_socket(self):
        p = self.start()
        said = self.refuses("--config", os.devnull, "--db", os.path.join(self.dir, "other.db"), "--listen", self.sock)
        self.assertIn("another process serves there", said)
        self.assertTrue(self.json("/api/v1/status")["version"])
        self.assertEqual(self.stop(p), 0)

    def test_no_socket_at_the_path(self):
        with open(self.sock, "w") as f:
            f.write("precious")
        said = self.refuses(*self.arguments(self.sock))
        self.assertIn("is no socket", said)
        with open(self.sock) as f:
            self.assertEqual(f.read(), "precious")

    def test_passed_by_systemd(self):
        """The default listener gives way; the node of a passed socket stays behind."""
        path = os.path.join(self.dir, "passed")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        self.sock = path
        # the descriptor must be 3, and LISTEN_PID the daemon's own
        script = 'exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"' % listener.fileno()
        p = self.spawn_through(script, "--config", os.devnull, "--db", self.db, "--interval", "100ms", pass_fds=[listener.fileno()])
        listener.close()
        self.wait_ready(p)
        self.assertEqual(self.stop(p), 0)
        self.assertTrue(os.path.exists(path))

    def spawn_through(self, script, *args, pass_fds):
        log = open(self.log, "ab")
        p = subprocess.Popen(["bash", "-c", script, CSTATED, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=pass_fds)
        log.close()
        self.running.append(p)
        return p


class Requests(DaemonTest):
    def setUp(self):
        super().setUp()
        self.p = self.start()

    def test_methods(self):
        status, headers, body = self.get("/api/v1/status")
        self.assertEqual(status, 200)
        self.assertEqual(headers["Content-Type"].split(";")[0], "application/json")
        status, headers, body = self.get("/api/v1/status", "HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["Content-Length"]), 100)
        for method in ("PUT", "DELETE", "POST", "PATCH", "BREW"):
            status, headers, body = self.get("/api/v1/status", method)
            self.assertEqual(status, 405, method)
            self.assertIn("GET", headers["Allow"])
            self.assertEqual(json.loads(body)["error"].keys(), {"code", "message", "param"})

    def test_csv_says_what_it_covers(self):
        until(lambda: self.json("/api/v1/status")["store"]["ticks"] > 3, "ticks")
        status, headers, body = self.get("/api/v1/query?metric=irq&start=1700000000&end=1800000000&step=10h&format=csv")
        self.assertEqual(status, 200, body)
        self.assertEqual(headers["X-Cstated-Start"], "1700000000000")
        self.assertEqual(headers["X-Cstated-End"], "1800000000000")
        self.assertEqual(headers["X-Cstated-Step-Ms"], "36000000")
        self.assertIn(headers["X-Cstated-Tier"], ("raw", "1m", "1h"))
        self.assertTrue(body.startswith(b"time,metric,"))
        status, headers, body = self.get("/api/v1/query?metric=irq&start=-1m")
        self.assertNotIn("X-Cstated-Start", headers)  # JSON has it in its head

    def test_errors_are_json(self):
        for path, expected in (("/nowhere", 404), ("/api/v1/status?x=%zz", 400), ("/api/v1/query?metric=nosuch", 400), ("/api/v1/query?metric=busy&start=never", 400)):
            status, headers, body = self.get(path)
            self.assertEqual(status, expected, path)
            error = json.loads(body)["error"]
            self.assertEqual(error.keys(), {"code", "message", "param"})
            self.assertTrue(error["message"])

    def test_too_large(self):
        status, _, body = self.get("/api/v1/labels", "POST", body=b"x" * 70000)
        self.assertEqual(status, 413)
        self.assertTrue(json.loads(body)["error"]["code"])
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(self.sock)
            s.sendall(b"GET /?" + b"a" * 40000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertRegex(s.recv(100), rb"^HTTP/1.1 4(14|31|13|00) ")
        self.assertTrue(self.json("/api/v1/status")["version"])

    def test_nonsense_ends_one_connection(self):
        for text in (b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01" + os.urandom(200) + b"\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(PATIENCE)
                s.connect(self.sock)
                s.sendall(text)
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
        self.assertTrue(self.json("/api/v1/status")["version"])
        self.assertIsNone(self.p.poll())


class Gone(DaemonTest):
    """C19: clients that reset the connection in the middle of a reply."""

    def test_hundred_resets(self):
        port = free_port()
        p = self.start("--listen", "127.0.0.1:%d" % port)
        until(lambda: self.json("/api/v1/status")["store"]["ticks"] >= 10, "some ticks")
        base = len(descriptors(p.pid))
        for _ in range(100):
            s = socket.create_connection(("127.0.0.1", port), PATIENCE)
            s.sendall(b"GET /api/v1/query?metric=busy,irq,idle_time,idle_usage&start=-1h HTTP/1.1\r\nHost: a\r\n\r\n")
            got = 0
            while got < 1024:
                piece = s.recv(1024 - got)
                if not piece:
                    break
                got += len(piece)
            self.assertGreater(got, 0)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        self.assertTrue(self.json("/api/v1/status")["version"])
        self.assertIsNone(p.poll())
        until(lambda: len(descriptors(p.pid)) <= base, "the descriptors to come back to %d" % base)
        self.assertEqual(self.stop(p), 0)

    def test_reader_of_the_client_goes(self):
        """cstatectl | head -1: more than a pipe holds, no message, no core."""
        self.start()
        until(lambda: self.json("/api/v1/status")["store"]["ticks"] >= 10, "some ticks")
        ctl = [os.environ["CSTATECTL"], "--connect", self.sock]
        for args in (["snapshot", "-i", "0.2", "-n", "10"], ["query", "--metric", "busy,irq,idle_time,idle_usage,wakeups", "--start", "-1h"],
                     ["status"]):
            read, write = os.pipe()
            fcntl.fcntl(write, 1031, 4096)  # F_SETPIPE_SZ: as small as it gets
            client = subprocess.Popen([*ctl, *args], stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE)
            os.close(write)
            self.assertTrue(os.read(read, 10), args)
            os.close(read)
            _, said = client.communicate(timeout=PATIENCE)
            self.assertEqual(said, b"", args)
            self.assertIn(client.returncode, (0, 1, -signal.SIGPIPE), args)
        self.assertTrue(self.json("/api/v1/status")["version"])

    def test_cap_and_eviction(self):
        """Idle clients and half heads up to the cap and beyond: a fresh one is still answered, samples keep coming."""
        path = os.path.join(self.dir, "c.conf")
        with open(path, "w") as f:
            f.write("[Http]\nMaxConnections=20\n")
        p = self.start("--config", path)
        base = len(descriptors(p.pid))
        clients = []
        for i in range(60):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.sock)
            if i % 2:
                s.sendall(b"GET /api/v1/sta")
            clients.append(s)
        until(lambda: self.json("/api/v1/status")["last_sample"], "a sample")
        before = self.json("/api/v1/status")
        self.assertLessEqual(len(descriptors(p.pid)), base + 21)
        until(lambda: self.json("/api/v1/status")["last_sample"] > before["last_sample"], "samples")
        for s in clients:
            s.close()
        until(lambda: len(descriptors(p.pid)) <= base, "the descriptors to come back")
        self.assertEqual(self.stop(p), 0)

    def test_crowd(self):
        """200 idle clients, 50 that never finish their head, one with the largest window: the fresh one is served, then all is as before."""
        path = os.path.join(self.dir, "c.conf")
        with open(path, "w") as f:
            f.write("[Http]\nMaxConnections=256\nIdleTimeout=3s\n")
        p = self.start("--config", path)
        until(lambda: self.json("/api/v1/status")["last_sample"], "a sample")
        base = len(descriptors(p.pid))
        crowd = []
        for i in range(251):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(PATIENCE)
            s.connect(self.sock)
            if i < 200:
                s.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertTrue(s.recv(65536))
            elif i < 250:
                s.sendall(b"GET /api/v1/status HTTP/1.1\r\nHo")
            else:
                s.sendall(b"GET /api/v1/query?metric=busy,irq,nmi,smi,idle_time,idle_usage,idle_above,idle_below&start=-3d HTTP/1.1\r\nHost: a\r\n\r\n")
            crowd.append(s)
        began = time.monotonic()
        status = self.json("/api/v1/status")
        self.assertLess(time.monotonic() - began, 1)
        until(lambda: self.json("/api/v1/status")["last_sample"] > status["last_sample"], "samples that keep coming")
        if not sanitized():
            self.assertLess(self.json("/api/v1/status")["self"]["rss_bytes"], 48 << 20)
        until(lambda: len(descriptors(p.pid)) <= base, "the deadlines to end them", 30)
        for s in crowd:
            s.close()
        self.assertEqual(self.stop(p), 0)

    def test_stop_with_clients(self):
        p = self.start()
        clients = [socket.socket(socket.AF_UNIX) for _ in range(10)]
        for s in clients:
            s.connect(self.sock)
            s.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: a\r\n\r\n")
        began = time.monotonic()
        self.assertEqual(self.stop(p, signal.SIGTERM), 0)
        self.assertLess(time.monotonic() - began, 2)
        for s in clients:
            s.close()


if __name__ == "__main__":
    main()
