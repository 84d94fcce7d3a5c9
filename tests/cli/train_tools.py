"""What the tests of `rudder train` share: small graphs written without NumPy, runs of the real program, what they leave."""
import array
import concurrent.futures
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("RUDDER_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("RUDDER_BUILD_DIR", os.path.join(SOURCE, "build"))
RUDDER = os.path.join(BUILD, "rudder")
TINY_MODEL = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                          "rudder", "models", "smollm2-135m-instruct-q4_1.gguf")
NONE, TRAIN, VALID, TEST = 0, 1, 2, 3


def why_no_model():
    """Why tests with a real model cannot run here; None when they can."""
    version = subprocess.run([RUDDER, "--version"], stdout=subprocess.PIPE, text=True).stdout
    if "llama.cpp, embedded" not in version:
        return "no model is embedded in %s" % RUDDER
    return None if os.path.exists(TINY_MODEL) else "no %s" % TINY_MODEL


class Checks:
    """Counts what holds and tells what does not; `with Checks() as checks` ends with "N passed, N failed"."""

    def __init__(self):
        self.passed = self.failed = 0

    def that(self, holds, *what):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED:", *what, flush=True)
        return bool(holds)

    def equal(self, found, expected, *what):
        return self.that(found == expected, *what, "- expected", expected, "found", found)

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="rudder-test-")
        return self

    def __exit__(self, kind, value, trace):
        shutil.rmtree(self.folder, ignore_errors=True)
        if kind is None:
            print("%d passed, %d failed" % (self.passed, self.failed))
            sys.exit(1 if self.failed or not self.passed else 0)


def write_npy(path, dtype, shape, values):
    """values: an array.array of the same element type."""
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (dtype, "".join("%d, " % s for s in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes())


def write_graph(folder, name, nodes, edges, features, labels, split, classes):
    """edges: pairs (from, to), kept as they are, duplicates and loops too; features: a list of floats a node."""
    os.makedirs(folder)
    into = [[] for _ in range(nodes)]
    for source, target in edges:
        into[target].append(source)
    indptr = array.array("q", [0])
    for sources in into:
        indptr.append(indptr[-1] + len(sources))
    width = len(features[0])
    write_npy(os.path.join(folder, "indptr.npy"), "<i8", [nodes + 1], indptr)
    write_npy(os.path.join(folder, "indices.npy"), "<i8", [len(edges)], array.array("q", [s for i in into for s in i]))
    write_npy(os.path.join(folder, "feat.npy"), "<f4", [nodes, width], array.array("f", [x for f in features for x in f]))
    write_npy(os.path.join(folder, "label.npy"), "<i4", [nodes], array.array("i", labels))
    write_npy(os.path.join(folder, "split.npy"), "|u1", [nodes], array.array("B", split))
    with open(os.path.join(folder, "graph.json"), "w") as file:
        json.dump({"format": "rudder-graph", "version": 1, "name": name, "nodes": nodes, "edges": len(edges),
                   "features": width, "classes": classes}, file)
    return folder


def community_graph(folder, nodes=600, degree=8, width=16, classes=3, training=0.6, seed=7, labelled=1.0):
    """Edges mostly within classes, in both directions; a few nodes are much in demand, so that a buffer has work."""
    rng = random.Random(seed)
    labels = [rng.randrange(classes) for _ in range(nodes)]
    members = [[v for v in range(nodes) if labels[v] == c] or [0] for c in range(classes)]
    edges = []
    for v in range(nodes):
        for _ in range(degree // 2):
            pool = members[labels[v]] if rng.random() < 0.8 else range(nodes)
            u = pool[int(len(pool) * rng.random() ** 2)]
            edges += [(u, v), (v, u)]
    features = [[rng.gauss(1.0 if c == labels[v] else 0.0, 1.5) for c in range(width)] for v in range(nodes)]
    split = [TRAIN if rng.random() < training else VALID if rng.random() < 0.5 else TEST for _ in range(nodes)]
    split[0] = TRAIN
    labels = [label if rng.random() < labelled else -1 for label in labels]
    return write_graph(folder, "communities", nodes, edges, features, labels, split, classes)


def partition(graph, folder, parts, *options):
    done = subprocess.run([RUDDER, "partition", graph, "-o", folder, "--parts", str(parts), *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit("error: rudder partition: exit code %d: %s" % (done.returncode, done.stdout))
    return folder


class Run:
    """A finished `rudder train`."""

    def __init__(self, code, output, folder):
        self.code, self.output, self.folder = code, output, folder
        self.summary, self.config = self.read("summary.json"), self.read("config.json")

    def read(self, name):
        """A JSON file of the run; None: it has none."""
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return None
        with open(path) as file:
            return json.load(file)

    def lines(self, kind):
        """{rank: [line as an object, ...]} of "steps" or "decisions"."""
        result = {}
        for path in glob.glob(os.path.join(self.folder, kind + ".rank*.jsonl")):
            with open(path) as file:
                result[int(re.search(r"rank(\d+)", path).group(1))] = [json.loads(line) for line in file]
        return result

    def losses(self):
        """The loss of every minibatch of every rank as it is written: shortest texts that read back equal."""
        result = {}
        for path in sorted(glob.glob(os.path.join(self.folder, "steps.rank*.jsonl"))):
            with open(path) as file:
                result[os.path.basename(path)] = [re.search(r'"loss": ?([^,]+),', line).group(1) for line in file]
        return result


def command(parts, folder, *options):
    return [RUDDER, "train", parts, "--run-dir", folder, *map(str, options)]


def train(parts, folder, *options, timeout=120, env=None):
    done = subprocess.run(command(parts, folder, *options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, env=dict(os.environ, **(env or {})))
    return Run(done.returncode, done.stdout, folder)


def side_by_side(calls):
    """Results of functions without arguments, in order; two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(lambda call: call(), calls)


def check_books(checks, run, what):
    """Counts agree with each other, steps sum to the summary, times sum to the wall."""
    summary = run.summary
    if not checks.that(run.code == 0 and summary is not None and summary["status"] == "ok", what, "exit code", run.code,
                       run.output[-2000:]):
        return
    steps = run.lines("steps")
    total = {key: sum(step[key] for rank in steps.values() for step in rank)
             for key in ("remote", "hit", "miss", "fill", "bytes", "seeds")}
    checks.equal(sorted(steps), list(range(summary["ranks"])), what, "ranks with steps")
    for rank in steps.values():
        checks.equal([step["step"] for step in rank], list(range(summary["epochs"] * summary["steps_per_epoch"])), what,
                     "steps of a rank")
    checks.that(all(s["remote"] == s["hit"] + s["miss"] for r in steps.values() for s in r), what, "remote = hit + miss")
    checks.that(all(s["bytes"] == (s["miss"] + s["fill"]) * summary["row_bytes"] for r in steps.values() for s in r), what,
                "bytes = fetched x row bytes")
    checks.equal(summary["remote_rows"], summary["hit_rows"] + summary["miss_rows"], what, "remote rows")
    checks.equal(summary["fetched_rows"], summary["miss_rows"] + summary["fill_rows"], what, "fetched rows")
    checks.equal(summary["fetched_bytes"], summary["fetched_rows"] * summary["row_bytes"], what, "fetched bytes")
    checks.equal(summary["remote_rows"], total["remote"], what, "remote rows of steps")
    checks.equal(summary["hit_rows"], total["hit"], what, "hit rows of steps")
    checks.equal(summary["fill_rows"], total["fill"] + summary["start_rows"], what, "fill rows of steps and start")
    for key in ("remote_rows", "hit_rows", "fetched_rows", "fill_rows", "fetched_bytes", "capacity_rows"):
        checks.equal(sum(rank[key] for rank in summary["ranks_detail"]), summary[key], what, key, "over ranks")
    stated = run.config["effective"]["loader_bytes_at_most"]
    first = summary["ranks_detail"][0]
    checks.that(first["loader_bytes"] - first["window_bytes"] <= stated, what, "memory of the loader", first["loader_bytes"],
                "with", first["window_bytes"], "sampled ahead; stated", stated)
    for rank in summary["ranks_detail"]:
        wall = rank["time"]["wall"]
        for thread in ("loader", "compute"):
            parts = sum(rank["time"][thread].values())
            checks.that(abs(parts - wall) <= 0.05 * wall, what, thread, "of rank", rank["rank"], "parts", parts, "wall", wall)
    checks.that(sum(summary["epoch_seconds"]) <= summary["seconds"], what, "epochs fit into the run")
    check_decisions(checks, run, what)


def check_decisions(checks, run, what):
    """The log of decisions and the summary tell the same."""
    logs = run.lines("decisions")
    for rank in run.summary["ranks_detail"]:
        lines, counts = logs[rank["rank"]], rank["decisions"]
        what_rank = what + " decisions of rank %d:" % rank["rank"]
        checks.equal([line["number"] for line in lines], list(range(len(lines))), what_rank, "numbers")
        checks.equal(sum(line["asked"] >= 0 for line in lines), counts["asked"], what_rank, "asked")
        checks.equal(sum(line["from_fallback"] for line in lines), counts["fallback"], what_rank, "fall-back")
        own = [line for line in lines if line["applied"] >= 0 and not line["from_fallback"]]
        checks.equal(len(own), counts["applied"], what_rank, "applied")
        for status in ("replaced", "kept", "nothing-stale"):
            checks.equal(sum(line["status"] == status for line in own), counts[status.replace("-", "_")], what_rank, status)
        ended = sum(counts[key] for key in ("applied", "late", "invalid", "failed"))
        checks.that(0 <= counts["asked"] - ended <= 1, what_rank, "at most one question is under way at the end", counts)
        entered = sum(line["replaced_rows"] for line in lines)
        checks.that(entered <= rank["entered_rows"], what_rank, "replaced rows entered", entered, rank["entered_rows"])
        for line in lines:
            context = line["context"]
            checks.that(context["remote_rows"] == context["hit_rows"] + context["miss_rows"], what_rank, "context", context)
