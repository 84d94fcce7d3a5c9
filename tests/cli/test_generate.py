#!/usr/bin/env python3
"""`rudder generate`: the whole way from a model to a trained GNN, which must be better than one that sees no neighbours;
what is impossible, full disks and killed processes leave nothing half made."""
import filecmp
import os
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from train_tools import RUDDER, Checks, partition, train

FILES = ["graph.json", "indptr.npy", "indices.npy", "feat.npy", "label.npy", "split.npy"]


def generate(*options, **more):
    return subprocess.run([RUDDER, "generate", *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **more)


def whole_way(checks, model, nodes, homophily):
    graph = os.path.join(checks.folder, model)
    made = generate(model, "-o", graph, "--nodes", nodes, "--classes", 5, "--features", 24, "--homophily", homophily,
                    "--noise", 1.5)
    checks.equal(made.returncode, 0, model, made.stderr)
    checks.that("takes about" in made.stderr and "wrote " + graph in made.stderr, "what was told:", made.stderr)
    seen = subprocess.run([RUDDER, "inspect", graph], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    checks.equal(seen.returncode, 0, seen.stdout)
    checks.that("(0 self-loops)" in seen.stdout and "5 classes" in seen.stdout, seen.stdout)
    parts = partition(graph, graph + "-2", 2)
    test = {}
    for fanout in ("0,0", "10,10"):
        run = train(parts, os.path.join(checks.folder, "run-%s-%s" % (model, fanout)), "--ranks", 2, "--fanout", fanout,
                    "--epochs", 4, "--batch", 200)
        if checks.equal(run.code, 0, model, fanout, run.output):
            test[fanout] = run.summary["test"]
    checks.that(test.get("10,10", 0) > test.get("0,0", 1) + 0.15, model, "a GNN is better than an MLP:", test)
    checks.that(test.get("0,0", 0) > 0.2 + 0.03, model, "an MLP is better than chance:", test)
    return graph


def same_everywhere(checks, graph):
    """The same options give the same files, in another folder and with another number of threads; another seed does not."""
    for name, options, equal in (("again", ["--threads", 3], True), ("other", ["--seed", 2], False)):
        other = os.path.join(checks.folder, name)
        generate("sbm", "-o", other, "--name", "sbm", "--nodes", 3000, "--classes", 5, "--features", 24, "--homophily", 0.7,
                 "--noise", 1.5, *options)
        for file in FILES:
            checks.equal(filecmp.cmp(os.path.join(graph, file), os.path.join(other, file), shallow=False), equal, name, file)


def impossible(checks):
    there = os.path.join(checks.folder, "none")
    for options, word in ((["sbm", "--nodes", 0], "--nodes"), (["sbm", "--nodes", 8], "classes"),
                          (["sbm", "--exponent", 2], "exponent"), (["sbm", "--train", 0], "train"),
                          (["sbm", "--train", 0.9], "train"), (["sbm", "--homophily", 1.1], "--homophily"),
                          (["rmat", "--probabilities", "0.5,0.5,0.5,0.5"], "sum to 1"),
                          (["rmat", "--probabilities", "0.5,0.5"], "A,B,C,D"),
                          (["rmat", "--probabilities", "0,0,0,1", "--nodes", 1000], "nodes"),
                          (["rmaat"], "rmat"), ([], "sbm or rmat")):
        made = generate(*options, "-o", there)
        checks.equal(made.returncode, 2, options, made.stderr)
        checks.that(word in made.stderr, options, "names", word, ":", made.stderr)
    checks.equal(generate("sbm").returncode, 2, "without -o")
    checks.that(not os.path.exists(there) and not os.path.exists(there + ".tmp"), "nothing is left")
    told = generate("sbm", "-o", there, "--nodes", 10 ** 9, "--edges", 2 * 10 ** 10, "--dry-run")
    checks.equal(told.returncode, 0, told.stderr)
    checks.that("memory" in told.stderr and not os.path.exists(there), told.stderr)


def failures(checks):
    """A full disk (a limit on the size of files stands for it), a kill, and a folder that is something else."""
    full = os.path.join(checks.folder, "full")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    made = generate("sbm", "-o", full, "--nodes", 20000, preexec_fn=limit)
    checks.equal(made.returncode, 3, made.stderr)
    checks.that("cannot be written" in made.stderr, made.stderr)
    checks.that(not os.path.exists(full) and not os.path.exists(full + ".tmp"), "a full disk leaves nothing")

    killed = os.path.join(checks.folder, "killed")
    child = subprocess.Popen([RUDDER, "generate", "sbm", "-o", killed, "--nodes", "2000000"], stderr=subprocess.DEVNULL)
    while child.poll() is None and not os.path.exists(killed + ".tmp"):
        time.sleep(0.01)
    child.kill()
    child.wait()
    checks.that(not os.path.exists(killed), "a killed one leaves no graph")
    checks.equal(generate("sbm", "-o", killed, "--nodes", 100).returncode, 0, "the next one goes on")
    checks.equal((os.path.exists(killed), os.path.exists(killed + ".tmp")), (True, False), "and clears up")

    other = os.path.join(checks.folder, "other-things")
    os.makedirs(other)
    open(os.path.join(other, "diary.txt"), "w").close()
    checks.equal(generate("sbm", "-o", other, "--nodes", 100).returncode, 2, "something else stands there")
    checks.that(os.path.exists(os.path.join(other, "diary.txt")), "and still does")


with Checks() as checks:
    sbm = whole_way(checks, "sbm", 3000, 0.7)
    whole_way(checks, "rmat", 4096, 0.8)
    same_everywhere(checks, sbm)
    impossible(checks)
    failures(checks)
