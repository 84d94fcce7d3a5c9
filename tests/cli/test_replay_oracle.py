#!/usr/bin/env python3
"""rudder replay --oracle: what it reports follows from the points that it writes, and its runs are those of the replay."""

import json
import os
import random
import subprocess
import tempfile
import unittest

SOURCE = os.environ.get("RUDDER_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
SHARED = os.environ.get("RUDDER_SHARED_DIR", os.path.join(SOURCE, "../shared"))
RUDDER = os.path.join(os.environ.get("RUDDER_BUILD_DIR", os.path.join(SOURCE, "build")), "rudder")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RUDDER_")}
TRACE = os.path.join(SHARED, "data/traces/rmat_b100.rank0.npz")
RULES = ["never", "fixed:16", "once", "gain"]


def run(*arguments):
    done = subprocess.run([RUDDER, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, env=ENVIRONMENT)
    return done.returncode, done.stdout, done.stderr


class Oracle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def ask(self, trace, *arguments):
        """The table, the object that --json gets, and the points."""
        code, out, err = run("replay", trace, "--policy", "score", "--oracle", self.path("points.jsonl"), "--json",
                             self.path("lab.json"), *arguments)
        self.assertEqual(code, 0, err)
        with open(self.path("lab.json")) as file:
            laboratory = json.load(file)
        with open(self.path("points.jsonl")) as file:
            points = [json.loads(line) for line in file]
        return out, laboratory, points

    def text_trace(self, minibatches):
        """A trace as text: ids whose popularity moves."""
        draw = random.Random(7)
        with open(self.path("ids.txt"), "w") as file:
            for t in range(minibatches):
                for _ in range(30):
                    file.write(f"{2 ** 33 + int(draw.expovariate(0.05)) + 3 * (t // 8)}\n")
                file.write("\n")
        return self.path("ids.txt")

    def check_sums(self, case, points):
        """Every figure of a run, from its points."""
        for of in case["runs"]:
            mine = [p for p in points if p["by"] == of["by"]]
            if of["by"].startswith("search"):
                self.assertEqual(mine, [])
                continue
            apart = [abs(p["keep_rows"] - p["replace_rows"]) for p in mine]
            lost = [p[p["taken"] + "_rows"] - min(p["keep_rows"], p["replace_rows"]) for p in mine]
            clear = [p for p in mine if p["kind"] == "clear"]
            self.assertEqual(of["points"], len(mine))
            self.assertEqual(of["stake_rows"], sum(apart))
            self.assertEqual(of["regret_rows"], sum(lost))
            self.assertEqual(of["replaced"], sum(p["taken"] == "replace" for p in mine))
            self.assertEqual(of["agreed"], sum(p["taken"] == p["expect"] for p in mine))
            self.assertEqual(of["clear"], len(clear))
            self.assertEqual(of["agreed_clear"], sum(p["taken"] == p["expect"] for p in clear))
            for p in mine:
                better = "replace" if p["replace_rows"] < p["keep_rows"] else "keep"
                self.assertEqual(p["expect"], better)
                self.assertEqual(p["kind"] == "clear",
                                 100 * abs(p["keep_rows"] - p["replace_rows"]) > min(p["keep_rows"], p["replace_rows"]))
        rows = {of["by"]: of["fetched_rows"] for of in case["runs"]}
        self.assertEqual(case["best_rows"], min(rows.values()))
        self.assertEqual(case["worst_rows"], max(rows.values()))
        self.assertEqual(rows[case["best_by"]], case["best_rows"])
        self.assertEqual(case["never_rows"], rows["never"])
        self.assertEqual(next(of for of in case["runs"] if of["by"] == "better")["regret_rows"], 0)

    def test_recorded_trace(self):
        out, laboratory, points = self.ask(TRACE, "--capacity", "10%", "--decider", ",".join(RULES), "--link",
                                           "1Gbit,50us", "--row-bytes", 400, "--sample", "1ms", "--compute", "2ms")
        self.assertEqual(len(laboratory["oracle"]), 1)
        case = laboratory["oracle"][0]
        self.check_sums(case, points)
        self.assertIn("best found", out)
        runs = {of["by"]: of for of in case["runs"]}
        replayed = {row["decider"]: row for row in laboratory["rows"] if row["policy"] == "score"}
        for rule in RULES:
            self.assertEqual(runs[rule]["fetched_rows"], replayed[rule]["fetched_rows"], rule)
            self.assertEqual(runs[rule]["fill_rows"], replayed[rule]["fill_rows"], rule)
        # From the best start by degree replacing only harms, and by much.
        self.assertEqual(case["best_by"], "never")
        self.assertGreater(case["worst_rows"] - case["best_rows"], 0.25 * case["remote_rows"])
        self.assertEqual(case["horizon"], 64)
        for p in points:
            self.assertTrue(all(not isinstance(value, dict) for value in p.values()))
            self.assertIn("A replacement is expected to save", p["words"])
            self.assertLess(p["keep_seconds"], 64)
            self.assertEqual(p["row_bytes"], 400)
        # They are situations for a model's self-test: what fails is the model, which is not there, and not a line.
        selftest = ["agent", "--selftest", "--model", "/nonexistent.gguf", "--situations", self.path("points.jsonl")]
        self.assertNotIn("points.jsonl", run(*selftest)[2])
        with open(self.path("points.jsonl"), "a") as file:
            file.write("{}\n")
        self.assertIn(f"points.jsonl, line {len(points) + 1}", run(*selftest)[2])

    def test_horizons_and_capacities(self):
        trace = self.text_trace(60)
        for horizon in (1, 10 ** 9):
            _, laboratory, points = self.ask(trace, "--capacity", "0,5,40,100%", "--period", 4, "--start", "empty",
                                             "--horizon", horizon)
            self.assertEqual([case["capacity"] for case in laboratory["oracle"]], ["0", "5", "40", "100%"])
            for case in laboratory["oracle"]:
                mine = [p for p in points if p["capacity"] == case["capacity_rows"]]
                self.check_sums(case, mine)
                rows = {of["by"]: of["fetched_rows"] for of in case["runs"]}
                for p in mine:
                    self.assertEqual(p["horizon"], min(horizon, 60 - p["minibatch"]))
                    self.assertIsNone(p["expect_seconds"])
                if horizon > 60:
                    self.assertLessEqual(rows["better"], rows["gain"])
                    self.assertGreaterEqual(rows["worse"], rows["gain"])
            self.assertEqual(laboratory["oracle"][0]["best_rows"], laboratory["oracle"][0]["remote_rows"])

    def test_short_trace(self):
        out, laboratory, points = self.ask(self.text_trace(3), "--capacity", 10)
        self.assertEqual(points, [])
        self.assertEqual({of["points"] for of in laboratory["oracle"][0]["runs"] if "points" in of}, {0})
        self.assertIn("0 of 0", out)

    def test_refusals(self):
        trace = self.text_trace(3)
        for policy in ("static", "lfu,mix"):
            code, _, err = run("replay", trace, "--policy", policy, "--capacity", 10, "--oracle", self.path("p.jsonl"))
            self.assertEqual(code, 2, err)
            self.assertIn("--policy score", err)
            self.assertFalse(os.path.exists(self.path("p.jsonl")))
        code, _, err = run("replay", trace, "--policy", "score", "--capacity", 10, "--oracle", self.path("no/p.jsonl"))
        self.assertEqual(code, 3, err)
        code, _, err = run("replay", trace, "--policy", "score", "--capacity", 10, "--oracle", self.path("p.jsonl"),
                           "--horizon", "-1")
        self.assertEqual(code, 2, err)


if __name__ == "__main__":
    unittest.main()
