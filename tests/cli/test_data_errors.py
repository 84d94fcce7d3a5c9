#!/usr/bin/env python3
"""Bad input: exit code 3 and a message with file, expected and found, whichever command reads it; bad usage: exit code 2.

Graph directories are written here by a writer of their own, so that the format is also checked against docs/formats.md.
"""

import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

SOURCE = os.environ.get("RUDDER_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
RUDDER = os.path.join(os.environ.get("RUDDER_BUILD_DIR", os.path.join(SOURCE, "build")), "rudder")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RUDDER_")}
LETTER = {"<i8": "q", "<i4": "i", "<u4": "I", "|u1": "B", "<f4": "f", "<f8": "d", "<i2": "h", ">i8": "q", ">f4": "f"}
NODES, FEATURES, CLASSES = 12, 4, 3


def run(*arguments):
    done = subprocess.run([RUDDER, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, env=ENVIRONMENT)
    return done.returncode, done.stdout, done.stderr


def has(command):
    return f"\n  {command} " in run("--help")[1]


def npy(dtype, shape, values, order="False", descr=None):
    """The bytes of an .npy file."""
    text = f"{{'descr': '{descr or dtype}', 'fortran_order': {order}, 'shape': ({', '.join(map(str, shape))},), }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    data = struct.pack(f"{dtype[0].replace('|', '<')}{len(values)}{LETTER[dtype]}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def put(path, content):
    with open(path, "wb") as file:
        file.write(content)


def write_graph(path, nodes=NODES, edges=None, split=None, label=None, feat=None):
    """A ring, unless edges (pairs of source and destination) are given."""
    edges = [(v, (v + 1) % nodes) for v in range(nodes)] + [((v + 1) % nodes, v) for v in range(nodes)] if edges is None else edges
    rows = [[u for u, w in edges if w == v] for v in range(nodes)]
    indptr = [0]
    for row in rows:
        indptr.append(indptr[-1] + len(row))
    os.makedirs(path)
    put(f"{path}/indptr.npy", npy("<i8", [nodes + 1], indptr))
    put(f"{path}/indices.npy", npy("<i8", [len(edges)], sum(rows, [])))
    put(f"{path}/feat.npy", npy("<f4", [nodes, FEATURES], feat or [0.5 * i for i in range(nodes * FEATURES)]))
    put(f"{path}/label.npy", npy("<i4", [nodes], label or [v % CLASSES for v in range(nodes)]))
    put(f"{path}/split.npy", npy("|u1", [nodes], split or [(1, 1, 2, 3)[v % 4] for v in range(nodes)]))
    facts = {"format": "rudder-graph", "version": 1, "name": "ring", "nodes": nodes, "edges": len(edges),
             "features": FEATURES, "classes": CLASSES}
    put(f"{path}/graph.json", json.dumps(facts).encode())


ARRAYS = {"indptr.npy": ("<i8", [NODES + 1]), "indices.npy": ("<i8", [2 * NODES]), "feat.npy": ("<f4", [NODES, FEATURES]),
          "label.npy": ("<i4", [NODES]), "split.npy": ("|u1", [NODES])}
PART_ARRAYS = {**{f"part0/{name}": how for name, how in ARRAYS.items()}, "part0/orig_id.npy": ("<i8", [NODES]),
               "part0/halo.npy": ("<i8", [0]), "part0/halo_degree.npy": ("<u4", [0]),
               "train_id.npy": ("<i8", [6]), "train_label.npy": ("<i4", [6]), "train_rank.npy": ("<i4", [6])}


def count(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def change_json(path, **members):
    with open(path) as file:
        facts = json.load(file)
    put(path, json.dumps({**facts, **members}).encode())


class Folder(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="rudder-data-")
        self.addCleanup(shutil.rmtree, self.root)
        self.graph, self.parts = f"{self.root}/graph", f"{self.root}/parts"
        write_graph(self.graph)

    def partition(self, parts=1):
        code, _, err = run("partition", self.graph, "-o", self.parts, "--parts", parts)
        self.assertEqual(code, 0, err)


class Cases:
    """What may be wrong in both kinds of directory. `base` is the directory, `inner` where its nodes' arrays are."""

    def refused(self, file, expected, found):
        """All readers refuse: exit code 3, the file by its path, what was expected and what was found."""
        for reader in self.readers():
            code, _, err = run(*reader)
            self.assertEqual(code, 3, f"{reader[0]}, {file}: {err}")
            line = next((text for text in err.splitlines() if file in text), None)
            self.assertIsNotNone(line, f"{reader[0]} should name {file}: {err}")
            for words in ("expected", expected, "found", found):
                self.assertIn(words, line, reader[0])
        self.assertEqual(sorted(os.listdir(self.root)), self.content)  # nothing was left behind

    def broken(self, name, content, expected, found):
        file = f"{self.base}/{name}"
        with open(file, "rb") as opened:
            good = opened.read()
        with self.subTest(file=name, found=found):
            put(file, content(good) if callable(content) else content)
            self.refused(file, expected, found)
        put(file, good)

    def test_truncated(self):
        for name, (dtype, shape) in self.arrays.items():
            n = count(shape) * int(dtype[2])
            if n > 0:
                self.broken(name, lambda good: good[:-1], f"expected {n} bytes of data", f"found {n - 1}")
            self.broken(name, lambda good: good[:40], "expected a header of", "found 30")
            self.broken(name, b"", "expected an .npy file", "found 0 bytes")
            self.broken(name, lambda good: good + b"x", f"expected {n} bytes of data", f"found {n + 1}")

    def test_dtype(self):
        for name, (dtype, shape) in self.arrays.items():
            other = "<f8" if dtype == "<f4" else "<i2"
            self.broken(name, npy(other, shape, [0] * count(shape)), f"expected {dtype} [", f"found {other} [")
            if dtype in ("<i8", "<f4"):
                big = dtype.replace("<", ">")
                self.broken(name, npy(big, shape, [0] * count(shape)), "little-endian", big)

    def test_order_and_pickles(self):
        for name, (dtype, shape) in self.arrays.items():
            zeros = [0] * count(shape)
            self.broken(name, npy(dtype, shape, zeros, order="True"), "expected C order", "found Fortran order")
            self.broken(name, npy(dtype, shape, zeros, descr="|O"), "expected a number type", "found pickled objects")
            self.broken(name, b"PK\x03\x04 this is something else", "expected an .npy file", "found \\x50\\x4b")

    def test_shape(self):
        for name, (dtype, shape) in self.arrays.items():
            if name.endswith("indices.npy") or name.endswith("halo.npy"):
                continue  # of any length in a part; what does not fit is seen by indptr
            more = [shape[0] + 1, *shape[1:]]
            self.broken(name, npy(dtype, more, [0] * count(more)), f"[{shape[0]}]", f"[{more[0]}]")

    def test_ids_out_of_range(self):
        ids = [0] * (2 * NODES)
        for wrong in (-1, NODES, 2**31, 2**40, -(2**63)):
            self.broken(f"{self.inner}indices.npy", npy("<i8", [2 * NODES], ids[:-1] + [wrong]),
                        f"node ids in 0..{NODES - 1}", f"found {wrong} at [{2 * NODES - 1}]")
        self.broken(f"{self.inner}indptr.npy", npy("<i8", [NODES + 1], [0] * NODES + [2**40]), str(2 * NODES), str(2**40))
        self.broken(f"{self.inner}indptr.npy", npy("<i8", [NODES + 1], [0, 5, 3] + [2 * NODES] * (NODES - 2)),
                    "never fall", "found 3 at [2] after 5")

    def test_features(self):
        for value, found in ((float("nan"), "nan"), (float("inf"), "inf"), (float("-inf"), "-inf")):
            values = [0.0] * (NODES * FEATURES)
            values[7] = value
            self.broken(f"{self.inner}feat.npy", npy("<f4", [NODES, FEATURES], values), "finite", f"found {found} at [1][3]")

    def test_labels(self):
        for wrong in (CLASSES, -2, 2**31 - 1):
            self.broken(f"{self.inner}label.npy", npy("<i4", [NODES], [0] * (NODES - 1) + [wrong]),
                        f"labels in -1..{CLASSES - 1}", f"found {wrong} at [{NODES - 1}]")
        self.broken(f"{self.inner}split.npy", npy("|u1", [NODES], [1] * (NODES - 1) + [9]), "3 (test)", "found 9")

    def test_json(self):
        name = self.main
        for members, expected, found in (({"nodes": 0}, '"nodes" in 1..', "found 0"), ({"nodes": "12"}, '"nodes"', "found"),
                                         ({"features": 0}, '"features" in 1..', "found 0"),
                                         ({"version": 7}, '"version" in 1..1', "found 7"),
                                         ({"format": "other"}, '"rudder-', 'found "other"')):
            with open(f"{self.base}/{name}") as file:
                facts = json.load(file)
            self.broken(name, json.dumps({**facts, **members}).encode(), expected, found)
        self.broken(name, lambda good: good[:-9], "expected a JSON object", "found something else at byte")
        self.broken(name, b"", "expected a JSON object", "found something else at byte 0")

    def test_missing(self):
        for name in self.arrays:
            with self.subTest(file=name):
                os.rename(f"{self.base}/{name}", f"{self.root}/kept")
                for reader in self.readers():
                    code, _, err = run(*reader)
                    self.assertEqual(code, 3, err)
                    self.assertIn(f"{self.base}/{name}: cannot be opened", err)
                os.rename(f"{self.root}/kept", f"{self.base}/{name}")


class BadGraph(Cases, Folder):
    main, inner, content, arrays = "graph.json", "", ["graph"], ARRAYS

    def setUp(self):
        super().setUp()
        self.base = self.graph

    def readers(self):
        return [("inspect", self.graph), ("partition", self.graph, "-o", self.parts, "--parts", 2),
                ("partition", self.graph, "--parts", 2, "--dry-run")]

    def rewritten(self, expected, found, file, **how):
        shutil.rmtree(self.graph)
        write_graph(self.graph, **how)
        self.refused(f"{self.graph}/{file}", expected, found)

    def test_empty_graph(self):
        self.rewritten('"nodes" in 1..', "found 0", "graph.json", nodes=0, edges=[])

    def test_no_training_nodes(self):
        self.rewritten("at least one training node", "found none", "split.npy", split=[0, 2, 3] * (NODES // 3))

    def test_good(self):
        """The valid oddities, so that the refusals above are for what is wrong and for nothing else."""
        star = [(0, v) for v in range(1, 9)] + [(v, 0) for v in range(1, 9)]
        for nodes, edges in ((1, []), (1, [(0, 0)]), (2, []), (9, star), (5, [(v, v) for v in range(5)]),
                             (3, [(0, 1)] * 7), (6, [(0, 1), (1, 0)])):
            with self.subTest(nodes=nodes, edges=edges):
                shutil.rmtree(self.graph)
                write_graph(self.graph, nodes=nodes, edges=edges)
                for parts in {1, nodes}:
                    for method in ("metis", "random"):
                        code, _, err = run("partition", self.graph, "-o", self.parts, "--parts", parts, "--method", method)
                        self.assertEqual(code, 0, err)
                        code, out, err = run("inspect", self.parts)
                        self.assertEqual(code, 0, err)
                        self.assertIn(f"{parts} parts", out)
                code, out, err = run("inspect", self.graph)
                self.assertEqual(code, 0, err)
                self.assertIn(f"{nodes} nodes, {len(edges)} in-edges", out)


class BadParts(Cases, Folder):
    main, inner, content, arrays = "parts.json", "part0/", ["graph", "parts"], PART_ARRAYS

    def setUp(self):
        super().setUp()
        self.partition()
        self.base = self.parts
        self.trains = 2 if HAS_TRAIN else 0  # starting MPI takes its time: the first two cases of each test

    def readers(self):
        train = ("train", self.parts, "--ranks", 1, "--epochs", 1, "--batch", 4, "--fanout", "2,2", "--hidden", 4,
                 "--policy", "none", "--decider", "never", "--run-dir", f"{self.root}/run")
        self.trains -= 1
        return [("inspect", self.parts)] + ([train] if self.trains >= 0 else [])

    def changed(self, expected, found, **members):
        with open(f"{self.parts}/parts.json") as file:
            facts = json.load(file)
        self.broken("parts.json", json.dumps({**facts, **members}).encode(), expected, found)

    def test_empty_graph(self):
        self.changed('"nodes" in 1..', "found 0", nodes=0, edges=0, offset=[0, 0])

    def test_no_training_nodes(self):
        for name in ("train_id", "train_label", "train_rank"):
            dtype = "<i8" if name == "train_id" else "<i4"
            put(f"{self.parts}/{name}.npy", npy(dtype, [0], []))
        self.changed('"train" in 1..', "found 0", train=0)

    def test_offsets(self):
        for offset in ([0], [0, NODES - 1], [1, NODES], [0, NODES + 1], [0, "x"], [0, 3, NODES]):
            self.changed('"offset"', "found", offset=offset)

    def test_training_nodes(self):
        self.broken("train_id.npy", npy("<i8", [6], [0] * 5 + [NODES]), f"in 0..{NODES - 1}", f"found {NODES} at [5]")
        self.broken("train_label.npy", npy("<i4", [6], [0] * 5 + [CLASSES]), f"in -1..{CLASSES - 1}", f"found {CLASSES}")
        self.broken("train_rank.npy", npy("<i4", [6], [0] * 5 + [6]), "in 0..5", "found 6 at [5]")


class BadHalo(Folder):
    def test_halo(self):
        self.partition(2)
        file = f"{self.parts}/part1/halo.npy"
        with open(file, "rb") as opened:
            good = opened.read()
        halo = list(struct.unpack(f"<{(len(good) - 128) // 8}q", good[128:]))
        self.assertGreater(len(halo), 1)
        for values, found in (([-1] + halo[1:], "found -1 at [0]"), (halo[:-1] + [NODES], f"found {NODES}"),
                              (halo[::-1], "after"), (halo[:-1] + [NODES - 1], f"found {NODES - 1}")):
            put(file, npy("<i8", [len(values)], values))
            code, _, err = run("inspect", self.parts)
            self.assertEqual(code, 3, err)
            self.assertIn(f"{file}: expected", err)
            self.assertIn(found, err)
        put(file, good)
        self.assertEqual(run("inspect", self.parts)[0], 0)


class BadUsage(Folder):
    def usage(self, words, *arguments):
        code, out, err = run(*arguments)
        self.assertEqual((code, out), (2, ""), err)
        for word in words:
            self.assertIn(word, err)

    def test_usage(self):
        self.usage(["--partz", "--parts"], "partition", self.graph, "-o", self.parts, "--partz", 2)
        self.usage(["--outptu", "--output"], "partition", self.graph, "--outptu", self.parts)
        self.usage(["--direction"], "import", "ogb", self.root, "-o", self.graph, "--directon", "both")
        self.usage(["metis"], "partition", self.graph, "-o", self.parts, "--method", "mettis")
        self.usage(["-o PARTS"], "partition", self.graph)
        self.usage(["-o GRAPH"], "import", "wordnet")
        self.usage(["wordnet"], "import", "wordnte", "-o", self.parts)
        self.usage(["--parts"], "partition", self.graph, "-o", self.parts, "--parts", 0)
        self.usage(["width"], "import", "wordnet", "-o", self.parts, "--width", 0)
        self.usage(["--edges"], "import", "ogb", self.root, "-o", self.parts, "--edges", "all")  # WordNet's option
        self.assertEqual(os.listdir(self.root), ["graph"])

    def test_more_parts_than_nodes(self):
        for extra in ((), ("--method", "random"), ("--dry-run",)):
            self.usage(["--parts", f"1..{NODES}", f"found {NODES + 1}"], "partition", self.graph, "-o", self.parts,
                       "--parts", NODES + 1, *extra)
        self.assertEqual(os.listdir(self.root), ["graph"])

    def test_not_a_directory_of_ours(self):
        for path, expected in ((self.root, "expected a directory with graph.json or parts.json, found neither"),
                               (f"{self.root}/nowhere", "expected a directory with graph.json or parts.json, found neither"),
                               (f"{self.graph}/feat.npy", "byte 0: expected a trace")):
            code, out, err = run("inspect", path)
            self.assertEqual((code, out), (3, ""), err)
            self.assertIn(f"{path}: {expected}", err)

    def test_output_is_never_destroyed(self):
        os.mkdir(self.parts)
        put(f"{self.parts}/letter.txt", b"mine")
        self.usage([self.parts, "--force"], "partition", self.graph, "-o", self.parts, "--parts", 2)
        self.usage([self.graph, "--force"], "partition", self.graph, "-o", self.graph, "--parts", 2)
        code, _, err = run("partition", self.graph, "-o", self.parts, "--parts", 2, "--force")
        self.assertEqual(code, 0, err)
        self.assertIn(f"{self.parts}.old1", err)
        with open(f"{self.parts}.old1/letter.txt") as file:
            self.assertEqual(file.read(), "mine")
        code, _, err = run("partition", self.graph, "-o", self.parts, "--parts", 3)  # one of ours: replaced
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(os.listdir(self.root)), ["graph", "parts", "parts.old1"])
        self.assertTrue(os.path.isdir(f"{self.parts}/part2"))


class Import(Folder):
    def test_killed(self):
        """A killed import leaves no half graph."""
        output = f"{self.root}/wordnet"
        for wait in (0.0, 0.05, 0.1, 0.2, 0.4):
            child = subprocess.Popen([RUDDER, "import", "wordnet", "-o", output], stderr=subprocess.DEVNULL, env=ENVIRONMENT)
            time.sleep(wait)
            child.send_signal(signal.SIGKILL)
            killed = child.wait() != 0
            if killed:
                self.assertFalse(os.path.exists(output))
            else:
                self.assertEqual(run("inspect", output)[0], 0)
                shutil.rmtree(output)
        self.assertEqual(run("import", "wordnet", "-o", output, "--width", 8)[0], 0)  # clears what was left
        self.assertEqual(sorted(os.listdir(self.root)), ["graph", "wordnet"])

    def test_memory(self):
        """With too little memory it says so, or falls back and says that; never a crash, never half a directory."""
        nodes = 20000
        write_graph(f"{self.root}/big", nodes=nodes, edges=[])
        put(f"{self.root}/big/indptr.npy", npy("<i8", [nodes + 1], [8 * v for v in range(nodes + 1)]))
        put(f"{self.root}/big/indices.npy", npy("<i8", [8 * nodes], [(v + k * k) % nodes for v in range(nodes) for k in range(8)]))
        change_json(f"{self.root}/big/graph.json", edges=8 * nodes)
        # One thread: what OpenBLAS does when it cannot start its threads is not what is tested here.
        environment, seen, megabytes = {**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"}, set(), 20
        while "metis" not in seen and megabytes < 2048:
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
            started = subprocess.run([RUDDER, "help"], capture_output=True, timeout=120, env=environment, preexec_fn=limit)
            if started.returncode != 0:
                megabytes += 1
                continue  # not even the program's libraries fit
            done = subprocess.run([RUDDER, "partition", f"{self.root}/big", "-o", self.parts, "--parts", "4"],
                                  capture_output=True, text=True, timeout=120, env=environment, preexec_fn=limit)
            megabytes += 1
            if done.returncode == 0:
                fell_back = "memory ran out; random parts were made instead" in done.stderr
                seen.add("random" if fell_back else "metis")
                self.assertEqual(run("inspect", self.parts)[0], 0)
                shutil.rmtree(self.parts)
            else:
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("memory", done.stderr)
                seen.add("refused")
            self.assertEqual(sorted(os.listdir(self.root)), ["big", "graph"])
        self.assertEqual(seen, {"refused", "random", "metis"})

    def test_dry_run(self):
        code, out, err = run("partition", self.graph, "--parts", 3, "--dry-run")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"memory: about .*B")
        self.assertRegex(out, r"disk: +at most .*B")
        self.assertEqual(os.listdir(self.root), ["graph"])


HAS_TRAIN = has("train")

if __name__ == "__main__":
    if not HAS_TRAIN:
        print("not run: rudder train on bad partitions (the command is not in this program)")
    unittest.main()
