#!/usr/bin/env python3
"""Odd graphs and odd options: what is valid trains and its books agree, what is not says why with the right exit code."""
import array
import functools
import os
import shutil

from train_tools import (NONE, TEST, TRAIN, VALID, Checks, check_books, community_graph, partition, side_by_side, train,
                         write_graph, write_npy)

TRAINING = ["--epochs", 2, "--batch", 2, "--fanout", "3,2", "--hidden", 8, "--period", 2]


def graphs(folder):
    """name: (graph directory, numbers of parts)"""
    def make(name, nodes, edges, split=None, classes=2):
        split = split or [(TRAIN, VALID, TEST, TRAIN)[v % 4] for v in range(nodes)]
        features = [[float(v % 3), 1.0, -0.5 * v] for v in range(nodes)]
        return write_graph(os.path.join(folder, name), name, nodes, edges, features, [v % classes for v in range(nodes)],
                           split, classes)

    star = [(0, v) for v in range(1, 30)] + [(v, 0) for v in range(1, 30)]
    path = [(v, v + 1) for v in range(9)] + [(v + 1, v) for v in range(9)]
    return {
        "one node": (make("one", 1, []), (1,)),
        "one node with a loop": (make("one-loop", 1, [(0, 0)]), (1,)),
        "one class": (make("one-class", 8, [(0, 1), (1, 0)], classes=1), (1, 2)),
        "two nodes": (make("two", 2, [(0, 1), (1, 0)], [TRAIN, TRAIN]), (1, 2)),
        "one edge, one way": (make("one-way", 2, [(1, 0)], [TRAIN, VALID]), (1, 2)),
        "isolated nodes": (make("isolated", 12, []), (1, 2, 3)),
        "loops": (make("loops", 10, path + [(v, v) for v in range(10)]), (1, 2)),
        "duplicate edges": (make("duplicates", 10, path * 5), (1, 2)),
        "star": (make("star", 30, star), (1, 2, 4)),
        "two components": (make("components", 8, [(0, 1), (1, 0), (2, 3), (6, 7), (7, 6)]), (1, 2)),
        "no validation, no test": (make("train-only", 6, path[:5], [TRAIN] * 6), (1, 2)),
        "mostly without a split": (make("few", 9, path[:8], [TRAIN] + [NONE] * 8), (1, 3)),
    }


def check_graphs(checks, folder):
    names, calls = [], []
    for name, (graph, counts) in graphs(folder).items():
        for n in counts:
            parts = partition(graph, "%s-parts%d" % (graph, n), n)
            for policy in ("none", "lfu", "static", "score"):
                options = TRAINING + ["--policy", policy, "--capacity", "50%"]
                if policy == "score":
                    options += ["--decider", "fixed:2"]
                names.append("%s, %d parts, %s:" % (name, n, policy))
                calls.append(functools.partial(train, parts, "%s-run%d-%s" % (graph, n, policy), *options))
    for what, run in zip(names, side_by_side(calls)):
        check_books(checks, run, what)
        if run.summary and run.summary["status"] == "ok":
            checks.that(all(isinstance(loss, (int, float)) for loss in run.summary["loss"]), what, "a loss",
                        run.summary["loss"])


def check_layers(checks, folder):
    """One to four layers, layers without neighbours, fan-outs above every degree."""
    parts = partition(community_graph(os.path.join(folder, "layers"), nodes=80, degree=4),
                      os.path.join(folder, "layers-parts"), 2)
    cases = [(fanout, evaluation) for fanout in ("3", "0", "0,0", "3,0", "0,3", "2,2,2", "2,0,2,1", "1000,1000")
             for evaluation in ("epoch", "end", "none")]
    calls = [functools.partial(train, parts, os.path.join(folder, "layers%d" % number), "--fanout", fanout, "--epochs", 2,
                               "--batch", 10, "--hidden", 8, "--eval", evaluation)
             for number, (fanout, evaluation) in enumerate(cases)]
    for (fanout, evaluation), run in zip(cases, side_by_side(calls)):
        check_books(checks, run, "fan-out " + fanout)
        if run.summary:
            measured = [v is not None for v in run.summary["valid"]]
            checks.equal(measured, {"epoch": [True, True], "end": [False, True], "none": [False, False]}[evaluation],
                         "epochs with a validation accuracy")
            checks.equal(run.summary["test"] is not None, evaluation != "none", "test accuracy")
            checks.that(fanout != "0,0" or run.summary["remote_rows"] == 0, "an MLP needs no remote rows")


def text_file(folder, name, text):
    path = os.path.join(folder, name + ".txt")
    with open(path, "w") as file:
        file.write(text)
    return path


def check_usage(checks, folder):
    parts = os.path.join(folder, "layers-parts")
    taken = os.path.join(folder, "taken")
    os.makedirs(taken)
    with open(os.path.join(taken, "precious"), "w") as file:
        file.write("precious")
    for code, text, options in (
            (2, "2 parts", ["--ranks", 3]),
            (2, "policy", ["--policy", "lfuu"]),
            (2, "lfu", ["--policy", "lfuu"]),
            (2, "decider", ["--policy", "lfu", "--decider", "gain"]),
            (2, "decider", ["--policy", "score", "--decider", "gian"]),
            (2, "--epochs", ["--epocs", 2]),
            (2, "capacity", ["--capacity", "many"]),
            (2, "fanout", ["--fanout", "1,,2"]),
            (2, "fanout", ["--fanout", "1,2,3,4,5,6,7,8,9"]),
            (2, "link", ["--link", "fast"]),
            (2, "start", ["--start", "warm"]),
            (2, "weights", ["--start", "weights"]),
            (2, "presample", ["--start", "presampel"]),
            (3, "nowhere.txt", ["--start", "file:" + os.path.join(folder, "nowhere.txt")]),
            (3, "line 3", ["--start", "file:" + text_file(folder, "negative", "5 1\n\n-1 1\n")]),
            (3, "line 1", ["--start", "file:" + text_file(folder, "beyond", "80 1\n")]),
            (3, "line 2", ["--start", "file:" + text_file(folder, "weightless", "# id weight\n5 heavy\n")]),
            (3, "line 1", ["--start", "file:" + text_file(folder, "more", "5 1 1\n")]),
            (3, "line 1", ["--start", "file:" + text_file(folder, "infinite", "5 inf\n")]),
            (2, "window", ["--window", "0"]),
            (2, "auto", ["--window", "wide"]),
            (2, "lookahead", ["--policy", "mix", "--window", "3"]),
            (2, "lookahead", ["--policy", "lookahead:0"]),
            (2, "window-memory", ["--window-memory", "much"]),
            (3, "nowhere.txt", ["--owner-cost", os.path.join(folder, "nowhere.txt")]),
            (3, "line 2", ["--owner-cost", text_file(folder, "costs-text", "1\ndear\n")]),
            (3, "line 1", ["--owner-cost", text_file(folder, "costs-two", "1 2\n")]),
            (2, "each of 2 ranks", ["--owner-cost", text_file(folder, "costs-three", "1\n2\n3\n")]),
            (2, "found 1", ["--run-dir", taken])):
        run = train(parts, os.path.join(folder, "usage"), *options)
        checks.equal(run.code, code, options, "exit code", run.output[-1500:])
        checks.that(text in run.output, options, "expected", repr(text), "found", run.output[-1500:])
        checks.equal(run.output.count("RUDDER_E_"), 1, options, "one message:", run.output[-1500:])
    checks.equal(os.listdir(taken), ["precious"], "a folder that was taken is as it was")
    run = train(os.path.join(folder, "nowhere"), os.path.join(folder, "usage"))
    checks.equal(run.code, 3, "no such partition: exit code", run.output)
    checks.that("nowhere" in run.output, "no such partition is named", run.output)
    run = train(parts, os.path.join(folder, "no-model"), "--policy", "score", "--decider", "llm",
                env={"XDG_CACHE_HOME": os.path.join(folder, "empty-cache")})
    checks.equal(run.code, 2, "no model: exit code", run.output)
    checks.that("rudder agent --fetch" in run.output, "no model: the remedy is named", run.output)
    checks.that(not os.path.exists(os.path.join(folder, "usage")), "a run that never began leaves no folder")


def check_torn_halo(checks, folder):
    """A partition whose halo lacks a neighbour is bad data, not a read past an array."""
    parts = os.path.join(folder, "torn")
    shutil.copytree(os.path.join(folder, "layers-parts"), parts)
    for name, dtype, kind in (("halo.npy", "<i8", "q"), ("halo_degree.npy", "<u4", "I")):
        path = os.path.join(parts, "part1", name)
        with open(path, "rb") as file:
            data = file.read()
        values = array.array(kind, data[10 + int.from_bytes(data[8:10], "little"):])
        write_npy(path, dtype, [len(values) - 1], values[1:])
    run = train(parts, os.path.join(folder, "torn-run"))
    checks.equal(run.code, 3, "a torn halo: exit code", run.output)
    checks.that("part1/halo.npy" in run.output, "a torn halo: the file is named", run.output)


def check_aliases(checks, folder):
    """Names of DistDGL and of the paper where they mean the same."""
    parts = os.path.join(folder, "layers-parts")
    ours = train(parts, os.path.join(folder, "ours"), "--fanout", "2,2", "--batch", 10, "--hidden", 8, "--epochs", 2,
                 "--policy", "score", "--capacity", "25%", "--period", 2, "--start", "degree", "--decider", "fixed:2")
    theirs = train(parts, os.path.join(folder, "theirs"), "--fan_out", "2,2", "--batch_size", 10, "--num_hidden", 8,
                   "--num_epochs", 2, "--policy", "score", "--prefetch_fraction", "0.25", "--eviction_period", 2,
                   "--prefetcher_init", "degree", "--decider", "fixed:2")
    check_books(checks, ours, "our names")
    check_books(checks, theirs, "their names")
    checks.equal(theirs.losses(), ours.losses(), "losses under their names")
    if ours.summary and theirs.summary:
        checks.equal(theirs.summary["fetched_rows"], ours.summary["fetched_rows"], "rows under their names")


def main():
    with Checks() as checks:
        check_graphs(checks, checks.folder)
        check_layers(checks, checks.folder)
        check_usage(checks, checks.folder)
        check_torn_halo(checks, checks.folder)
        check_aliases(checks, checks.folder)


if __name__ == "__main__":
    main()
