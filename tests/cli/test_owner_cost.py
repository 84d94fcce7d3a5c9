#!/usr/bin/env python3
"""Row costs in real training: behind a link that is ten times slower than the others an owner is asked for fewer rows, and
nothing is learned differently; on equal links not one row changes."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from train_tools import RUDDER, Checks, partition, train

RANKS, SLOW = 3, 2


def asked(run, slow_only):
    """Bytes that the fast ranks got: from the slow one, or all; ids and neighbours are the same in all runs."""
    ranks = run.summary["ranks_detail"]
    return sum(bytes for r in ranks if r["rank"] != SLOW for p, bytes in enumerate(r["traffic_in_by_rank"])
               if p == SLOW or not slow_only)


with Checks() as checks:
    graph = os.path.join(checks.folder, "graph")
    subprocess.run([RUDDER, "generate", "sbm", "-o", graph, "--nodes", "12000", "--features", "64", "--classes", "6"],
                   check=True, stderr=subprocess.DEVNULL)
    parts = partition(graph, graph + "-3", RANKS)
    for policy in ("mix", "lookahead"):
        runs = {}
        for link in ("100Mbit;%d=10Mbit" % SLOW, "100Mbit"):
            for cost in ("off", "measured"):
                run = train(parts, os.path.join(checks.folder, "%s-%s-%d" % (policy, cost, len(link))), "--ranks", RANKS,
                            "--policy", policy, "--capacity", "25%", "--epochs", 3, "--batch", 200, "--eval", "none",
                            "--link", link, "--owner-cost", cost)
                checks.equal(run.code, 0, policy, link, cost, run.output)
                runs[link, cost] = run
        (slow, _), (equal, _) = [link for link in runs if link[1] == "off"]
        off, measured = runs[slow, "off"], runs[slow, "measured"]
        if any(run.summary is None for run in runs.values()):
            continue
        checks.that(asked(measured, True) < 0.9 * asked(off, True), policy, "asks the slow rank for less:",
                    asked(measured, True), "bytes against", asked(off, True))
        seconds = [sum(r["time"]["loader"]["exchange"] for r in run.summary["ranks_detail"] if r["rank"] != SLOW)
                   for run in (off, measured)]
        print("%s: %d bytes of the slow rank against %d; exchange %.2f s against %.2f s" %
              (policy, asked(measured, True), asked(off, True), seconds[1], seconds[0]))
        checks.equal(measured.losses(), off.losses(), policy, "the same training")
        checks.equal(runs[equal, "measured"].losses(), off.losses(), policy, "the same training on equal links")
        checks.equal(runs[equal, "measured"].summary["fetched_rows"], runs[equal, "off"].summary["fetched_rows"], policy,
                     "equal links: the same rows")
    bad = train(parts, os.path.join(checks.folder, "bad"), "--ranks", RANKS, "--link", "1Gbit;3=1Mbit")
    checks.equal(bad.code, 2, "an owner that is not there", bad.output)
    checks.that("owners from 0 to 2" in bad.output, bad.output)
