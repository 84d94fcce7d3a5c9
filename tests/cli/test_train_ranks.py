#!/usr/bin/env python3
"""N ranks with batch B compute what one rank with batch N x B does; each seed comes once an epoch; ranks without seeds end."""
import os

from train_tools import Checks, check_books, community_graph, partition, train

TRAINING = ["--epochs", 2, "--fanout", "5,5", "--hidden", 16, "--dropout", "0.3", "--seed", 5, "--period", 4]


def losses(run):
    return [step["loss"] for step in run.lines("steps")[0]]


def seeds(run):
    """Seeds of all ranks, by step."""
    ranks = run.lines("steps").values()
    return [sum(steps[i]["seeds"] for steps in ranks) for i in range(len(next(iter(ranks))))]


def check_same_losses(checks, folder):
    graph = community_graph(os.path.join(folder, "graph"), nodes=500)
    batch = 48
    for order in ("shuffled", "community", "class", "drift"):
        one = None
        for n in (1, 2, 3, 4):
            parts = os.path.join(folder, "parts%d" % n)
            if not os.path.exists(parts):
                partition(graph, parts, n)
            run = train(parts, os.path.join(folder, "run-%s-%d" % (order, n)), *TRAINING, "--batch", batch // n,
                        "--seed-order", order, "--policy", ("lookahead", "lfu", "mix")[n % 3])
            what = "%d ranks, %s:" % (n, order)
            check_books(checks, run, what)
            if run.code != 0:
                continue
            one = one or run
            found, expected = losses(run), losses(one)
            checks.equal(len(found), len(expected), what, "steps")
            apart = max(abs(a - b) / abs(b) for a, b in zip(found, expected))
            checks.that(apart < 1e-3, what, "losses are apart by", apart)
            checks.that(abs(found[0] - expected[0]) / expected[0] < 1e-5, what, "first loss", found[0], expected[0])
            training = sum(rank["train_nodes"] for rank in run.summary["ranks_detail"])
            per_epoch = [batch] * (training // batch) + ([training % batch] if training % batch else [])
            checks.equal(seeds(run), per_epoch * 2, what, "seeds by step")
            checks.that(abs(run.summary["test"] - one.summary["test"]) < 0.05, what, "test accuracy", run.summary["test"])


def check_partitions(checks, folder):
    """Another partition of the same graph: the same minibatches."""
    graph = os.path.join(folder, "graph")
    runs = []
    for method in ("metis", "random"):
        parts = partition(graph, os.path.join(folder, "parts-" + method), 3, "--method", method)
        runs.append(train(parts, os.path.join(folder, "run-" + method), *TRAINING, "--batch", 16, "--policy", "none"))
        checks.equal(runs[-1].code, 0, method, runs[-1].output[-2000:])
    apart = max(abs(a - b) / abs(b) for a, b in zip(losses(runs[0]), losses(runs[1])))
    checks.that(apart < 1e-3, "metis and random: losses are apart by", apart)
    checks.that(runs[1].summary["remote_rows"] > runs[0].summary["remote_rows"], "a random partition needs more remote rows")


def check_few_seeds(checks, folder):
    """More ranks than training nodes; a batch that does not divide; a batch larger than all."""
    for n_train, n, batch in ((1, 2, 1), (2, 4, 1), (2, 4, 100), (3, 2, 2), (7, 3, 2)):
        name = "few-%d-%d-%d" % (n_train, n, batch)
        graph = community_graph(os.path.join(folder, name), nodes=40, degree=4, training=0)
        with open(os.path.join(graph, "split.npy"), "r+b") as file:
            file.seek(-40, os.SEEK_END)
            file.write(bytes([1] * n_train + [2, 3] * ((40 - n_train) // 2) + [3] * ((40 - n_train) % 2)))
        parts = partition(graph, os.path.join(folder, name + "-parts"), n)
        for policy in ("none", "lfu", "mix", "static", "score", "lookahead"):
            run = train(parts, os.path.join(folder, "%s-%s" % (name, policy)), "--epochs", 3, "--batch", batch, "--fanout",
                        "3,3", "--hidden", 8, "--policy", policy, "--period", 2)
            check_books(checks, run, name + " " + policy)
            if run.code == 0:
                checks.equal(sum(seeds(run)), 3 * n_train, name, policy, "seeds")
                checks.equal(run.summary["steps_per_epoch"], -(-n_train // (n * batch)), name, "steps")


def check_unlabelled(checks, folder):
    """Seeds without a label count nowhere in the loss."""
    for labelled in (0.5, 0.0):
        graph = community_graph(os.path.join(folder, "labelled%g" % labelled), nodes=60, degree=4, labelled=labelled)
        one = None
        for n in (1, 2):
            parts = partition(graph, os.path.join(folder, "labelled%g-%d" % (labelled, n)), n)
            run = train(parts, os.path.join(folder, "labelled%g-run%d" % (labelled, n)), *TRAINING, "--batch", 8 // n)
            check_books(checks, run, "labelled %g, %d ranks" % (labelled, n))
            one = one or run
            if run.code == 0:
                checks.that(all(abs(a - b) <= 1e-3 * abs(b) for a, b in zip(losses(run), losses(one))), "labelled", labelled)
        checks.that(labelled > 0 or set(losses(one)) == {0}, "no labels: no loss", losses(one))


def main():
    with Checks() as checks:
        check_same_losses(checks, checks.folder)
        check_partitions(checks, checks.folder)
        check_few_seeds(checks, checks.folder)
        check_unlabelled(checks, checks.folder)


if __name__ == "__main__":
    main()
