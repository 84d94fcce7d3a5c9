#!/usr/bin/env python3
"""Traces that are damaged, foreign or hostile: exit code 3, and a message with file, position, expected and found.

.rtr files and archives are written here by a writer of their own, so that the format is also checked against docs/formats.md.
"""

import io
import os
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile
import zlib

SOURCE = os.environ.get("RUDDER_SOURCE_DIR", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
RUDDER = os.path.join(os.environ.get("RUDDER_BUILD_DIR", os.path.join(SOURCE, "build")), "rudder")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("RUDDER_")}
MOST_MEGABYTES = 300  # that any of these files may cost
NAN = struct.pack("<7f", *[float("nan")] * 7)


def run(*arguments, given=None):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([RUDDER, *map(str, arguments)], stdin=given or subprocess.DEVNULL, stdout=out, stderr=err,
                                 env=ENVIRONMENT)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return child.returncode, out.read().decode(), err.read().decode(), used.ru_maxrss / 1024


# ---- a writer of .rtr, as docs/formats.md has it ------------------------------------------------------------------------


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def sequence(ids):
    out, before = b"", 0
    for i in ids:
        d = i - before
        out += varint(2 * d if d >= 0 else -2 * d - 1)
        before = i
    return out


def block(kind, count, first, payload, raw=None):
    head = struct.pack("<4sIQIII", kind, count, first, len(payload) if raw is None else raw, len(payload), zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def start(version=1):
    head = b"\x89RTR\r\n\x1a\n" + struct.pack("<I", version)
    return head + struct.pack("<I", zlib.crc32(head))


def facts(**members):
    import json
    return block(b"HEAD", 1, 0, json.dumps({"graph": "g", **members}).encode())


def minibatch(ids, announced=0, miss=0, fill=0, times=NAN, n=None, payload=None):
    counts = b"".join(map(varint, (len(ids) if n is None else n, announced, miss, fill)))
    return times + counts + (sequence(ids) if payload is None else payload)


def data(*minibatches, first=0, count=None):
    return block(b"DATA", len(minibatches) if count is None else count, first, b"".join(minibatches))


def done(minibatches, ids):
    return block(b"DONE", 0, minibatches, struct.pack("<Q", ids))


def zeros_under_zstd(n):
    """A frame of runs of the byte 0, 128 KiB each: a thousandth of a thousandth of what it unpacks to."""
    frame, run_bytes = struct.pack("<IBB", 0xFD2FB528, 0x00, 7 << 3), 128 << 10
    while n > 0:
        some = min(n, run_bytes)
        n -= some
        frame += struct.pack("<I", some << 3 | 1 << 1 | (n == 0))[:3] + b"\0"
    return frame


# ---- archives -----------------------------------------------------------------------------------------------------------


def npy(dtype, values):
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (dtype, len(values))).ljust(117) + "\n"
    letter = {"<u4": "I", "<i4": "i", "<i8": "q", "<u8": "Q", "<f4": "f"}[dtype]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + struct.pack("<%d%s" % (len(values), letter), *values)


def npz(compression=zipfile.ZIP_DEFLATED, **arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, (dtype, values) in arrays.items():
            archive.writestr(name + ".npy", npy(dtype, values))
    return out.getvalue()


class Traces(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.path = f"{self.root}/trace"
        self.addCleanup(shutil.rmtree, self.root)

    def put(self, content):
        with open(self.path, "wb") as file:
            file.write(content)

    def refused(self, name, content, *says):
        """Whatever reads it: exit 3, told with the file's name, nothing left behind, not much memory taken."""
        self.put(content)
        for command in (["inspect", self.path], ["import-trace", self.path, "-o", f"{self.root}/out.rtr"]):
            with self.subTest(name=name, command=command[0]):
                code, out, err, megabytes = run(*command)
                self.assertEqual((code, out), (3, ""), err)
                for text in (self.path, "expected", "found", "RUDDER_E_DATA", *says):
                    self.assertIn(text, err)
                self.assertEqual(len(err.splitlines()), 1)
                self.assertTrue(err.isprintable() or err[:-1].isprintable(), err)
                self.assertLess(megabytes, MOST_MEGABYTES)
                self.assertEqual(os.listdir(self.root), ["trace"])

    def accepted(self, content, *says):
        self.put(content)
        code, out, err, megabytes = run("inspect", self.path)
        self.assertEqual((code, err), (0, ""))
        for text in says:
            self.assertRegex(out, text)
        self.assertLess(megabytes, MOST_MEGABYTES)
        return out

    def test_the_format_is_as_documented(self):
        halo, degree = [7, 3, 2 ** 63 - 1], [1, 2 ** 32 - 1, 0]
        content = (start() + facts(ranks=2, rank=1, owners=3, halo=3, halo_degree=True, row_bytes=400, fanouts=[10, 5],
                                   batch=100, link_latency=5e-5, more={"unknown": [1]})
                   + block(b"OWNS", 3, 0, sequence([0, 2 ** 62, 2 ** 62]))
                   + block(b"HALO", 1, 0, sequence(halo[:1]) + varint(degree[0]))
                   + block(b"HALO", 2, 1, sequence(halo[1:]) + b"".join(map(varint, degree[1:])))
                   + data(minibatch([2 ** 62 - 1, 0, 5, 5], announced=3, miss=3, fill=1), minibatch([]))
                   + data(minibatch([8], times=struct.pack("<7f", *[0.5] * 7)), first=2) + done(3, 5))
        out = self.accepted(content, r"graph +g\n", r"rank +1 of 2, owners known", r"halo +3\n", r"minibatches +3\n",
                            r"of them empty +1\n", r"remote ids +5, at most 4", r"distinct ids +4\n", r"batch 100, fan-outs 10,5",
                            r"fetched rows +2, of them 0 fill", r"announced +2\.0 minibatches", r"loader +2\.5 s", r"trainer +1 s",
                            r"row bytes +400")
        self.assertNotIn("cut off", out)
        code, _, err, _ = run("import-trace", self.path, "-o", f"{self.root}/again")
        self.assertEqual((code, err), (0, ""))
        self.path = f"{self.root}/again"
        with open(self.path, "rb") as file:
            again = file.read()
        self.assertEqual(self.accepted(again).split("\n", 1)[1], out.split("\n", 1)[1])
        self.accepted(again[:-1], "cut off")

    def test_damaged(self):
        good = start() + facts() + data(minibatch([1, 2, 3])) + done(1, 3)
        self.accepted(good, r"remote ids +3")
        at = len(start() + facts())
        self.refused("more behind it", good + b"x", f"byte {len(good)}: expected the end of the file")
        self.refused("changed payload", good[:at + 40] + b"\xff" + good[at + 41:], f"block at byte {at}: expected the checksum")
        self.refused("changed head", good[:at + 9] + b"\xff" + good[at + 10:], f"byte {at}: expected a block")
        self.refused("garbage for a block", good[:at] + b"\0" * 40, f"byte {at}: expected a block")
        self.refused("garbage for a torn block", good[:at] + b"xyz", f"byte {at}: expected a block")
        self.refused("no head", start(), "byte 16: expected a block HEAD, found the end of the file")
        self.refused("half a start", start()[:9], "expected the mark of a .rtr file")
        self.refused("as text", start().replace(b"\r\n", b"\n") + facts(), "as by a transfer as text")
        self.refused("two heads", start() + facts() + facts() + done(0, 0), "expected a block DATA or DONE, found HEAD")
        self.refused("newer", start(2) + facts(), "byte 8: expected version 1 of the format, found 2")

    def test_foreign(self):
        with open(RUDDER, "rb") as file:
            self.refused("a program", file.read(100000), "byte 0: expected a trace", "found 7f 45 4c 46")
        self.refused("a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "found 89 50 4e 47")
        self.refused("nothing", b"", "found nothing")
        self.refused("JSON", b'{"a": 1}', "byte 0: expected a trace")
        self.refused("zeros", b"\0" * 100, "byte 0: expected a trace")
        code, _, err, _ = run("import-trace", self.root, "-o", f"{self.root}/out")
        self.assertEqual(code, 3)
        self.assertIn("found a directory", err)
        code, _, err, _ = run("import-trace", f"{self.root}/absent", "-o", f"{self.root}/out")
        self.assertEqual(code, 3)
        self.assertIn("No such file", err)

    def test_hostile_sizes(self):
        head, empty = start() + facts(), 32
        at = f"at byte {len(head)}"
        self.refused("4 GiB", head + block(b"DATA", 1, 0, b"x", raw=2 ** 32 - 1), "at most 67108864 bytes")
        self.refused("more than unpacked", head + block(b"DATA", 1, 0, b"xyz", raw=2), "at most 67108864 bytes")
        self.refused("no zstd", head + block(b"DATA", 1, 0, b"xyz", raw=2 ** 26), at, "under zstd")
        self.refused("more than stated", head + block(b"DATA", 1, 0, zeros_under_zstd(2 ** 26 + 1), raw=2 ** 26), at, "under zstd")
        self.refused("less than stated", head + block(b"DATA", 1, 0, zeros_under_zstd(2 ** 26 - 1), raw=2 ** 26), at, "fewer")
        self.refused("a huge halo", start() + facts(halo=2 ** 53), "expected a block HALO, found the end of the file")
        self.refused("a huge halo, later", start() + facts(halo=2 ** 53) + block(b"HALO", 2 ** 31, 0, b"xyz"), "the next ids")
        self.refused("an unpacked halo", start() + facts(halo=2 ** 26) + block(b"HALO", 2 ** 26, 0, zeros_under_zstd(2 ** 26), raw=2 ** 26),
                     "not to be compressed")
        self.refused("many owners", start() + facts(ranks=2 ** 20, owners=2 ** 20 + 1) + block(b"OWNS", 2 ** 20 + 1, 0, b"xyz"), "offset")
        self.refused("deep facts", start() + block(b"HEAD", 1, 0, b'{"a":' + b"[" * 60000), "a JSON object")
        self.refused("long facts", start() + block(b"HEAD", 1, 0, b'{"a": "' + b"x" * 70000 + b'"}'), "65536 bytes")
        count = 2 ** 26 // empty  # minibatches of no ids: seven times of 0, four counts of 0
        self.accepted(head + block(b"DATA", count, 0, zeros_under_zstd(2 ** 26), raw=2 ** 26) + done(count, 0),
                      r"minibatches +2 097 152\n", r"of them empty +2 097 152")

    def test_hostile_contents(self):
        head = start() + facts()
        cases = {
            "fewer ids than counted": data(minibatch([1], n=4)),
            "fewer minibatches than counted": data(minibatch([1]), count=2),
            "more bytes than minibatches": data(minibatch([1]), minibatch([2]), count=1),
            "no minibatch": data(count=0),
            "another first": data(minibatch([1]), first=1),
            "an id below 0": data(minibatch([0], payload=varint(1))),
            "an id beyond": data(minibatch([0], payload=varint(2 ** 64 - 2) + varint(2), n=2)),
            "a long varint": data(minibatch([0], payload=b"\x80" * 9 + b"\x02")),
            "a longer varint": data(minibatch([0], payload=b"\x80" * 10 + b"\x00")),
            "an endless varint": data(minibatch([0], payload=b"\xff" * 40)),
            "a cut varint": data(minibatch([0], payload=b"\x80")),
            "too many ids": data(minibatch([0], n=2 ** 22 + 1, payload=b"\0" * (2 ** 22 + 1))),
            "ids without end": data(minibatch([0], n=2 ** 64 - 1)),
            "more misses than ids": data(minibatch([1], miss=3)),
            "announced without end": data(minibatch([1], announced=2 ** 31 + 1)),
            "fill rows without end": data(minibatch([1], fill=2 ** 64 - 1)),
            "seconds below 0": data(minibatch([1], times=struct.pack("<7f", 0, 0, -1, 0, 0, 0, 0))),
            "seconds without end": data(minibatch([1], times=struct.pack("<7f", 0, 0, 0, float("inf"), 0, 0, 0))),
            "another sum of minibatches": data(minibatch([1])) + done(2, 1),
            "another sum of ids": data(minibatch([1])) + done(1, 2),
            "an end of another size": data(minibatch([1])) + block(b"DONE", 0, 1, b"1234"),
        }
        for name, content in cases.items():
            self.refused(name, head + content, f"block at byte {len(head) + (content.find(b'DONE') if b'DONE' in content else 0)}")
        for members in ({"rank": 2, "ranks": 2}, {"batch": -1}, {"batch": "many"}, {"batch": 1e300}, {"seed": 5}, {"seed": "x"},
                        {"seed": "18446744073709551616"}, {"fanouts": [1] * 9}, {"fanouts": ["a"]}, {"fanouts": {}}, {"graph": 1},
                        {"link_rate": -1}, {"max_tracked": -1}, {"owner_links": 5}, {"owner_links": [[0, 1, 1]]}, {"owners": 1}, {"ranks": 2, "owners": 2}, {"ranks": 2 ** 30}, {"halo": 1.5}):
            self.refused(str(members), start() + facts(**members) + done(0, 0), "byte 48")
        for content in (b"", b"[1]", b"{", b"\xff\xfe", b'{"a": 1'):
            self.refused(str(content), start() + block(b"HEAD", 1, 0, content) + done(0, 0), "block at byte 16")
        halo = start() + facts(halo=3)
        self.refused("halo twice", halo + block(b"HALO", 3, 0, sequence([4, 5, 4])), "found 4 twice")
        self.refused("halo below 0", halo + block(b"HALO", 3, 0, varint(1) * 3), "as many ids and degrees")
        self.refused("halo too long", halo + block(b"HALO", 4, 0, sequence([1, 2, 3, 4])), "no more than all of it")
        self.refused("halo missing", halo + data(minibatch([1])), "expected a block HALO, found DATA")
        for links in ([[2, 1, 1]], [[-1, 1, 1]], [[.5, 1, 1]], [[0, 1, 1], [0, 2, 1]], [[0, 1]], [[0, 1, 1, 1]], [[0, -1, 1]],
                      [[0, 1, "x"]], [7], [None], {"a": 1}, [[1, 1, 1]] * 17):
            self.refused(str(links), start() + facts(ranks=2, rank=0, owners=3, owner_links=links), "owner_links: expected")
        owners = start() + facts(ranks=2, rank=0, owners=3)
        self.refused("owners fall", owners + block(b"OWNS", 3, 0, sequence([0, 5, 4])), "do not fall")
        self.refused("own ids", owners + block(b"OWNS", 3, 0, sequence([0, 5, 9])) + data(minibatch([6, 4])), "minibatch 0", "found 4")
        self.refused("nobody's ids", owners + block(b"OWNS", 3, 0, sequence([0, 5, 9])) + data(minibatch([6]), minibatch([9])),
                     "minibatch 1", "found 9")

    def test_terminals_are_not_steered(self):
        self.put(start() + facts(run="\x1b[2J\n\x7f") + done(0, 0))
        code, out, _, _ = run("inspect", self.path)
        self.assertEqual(code, 0)
        self.assertIn("?[2J??", out)

    def test_archives(self):
        good = {"ids": ("<u4", [5, 2 ** 32 - 1, 5]), "offsets": ("<i8", [0, 2, 2, 3])}
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.accepted(npz(compression, **good), r"minibatches +3\n", r"of them empty +1", r"distinct ids +2", r"halo +not known")
        self.accepted(npz(**good, halo=("<i8", [2 ** 40, 5]), halo_degree=("<u4", [1, 2]), minibatches_per_epoch=("<i8", [2, 1])),
                      r"halo +2\n")
        content = npz(**good)
        self.refused("no offsets", npz(ids=good["ids"]), 'expected a member "offsets.npy"')
        self.refused("no ids", npz(offsets=good["offsets"]), 'expected a member "ids.npy"')
        self.refused("floats", npz(ids=("<f4", [1]), offsets=("<i8", [0, 1])), "ids: expected <u4, <i4, <i8 or <u8, found <f4")
        self.refused("below 0", npz(ids=("<i8", [1, -1]), offsets=("<i8", [0, 2])), "ids[1]: expected a number from 0", "found -1")
        self.refused("beyond", npz(ids=("<u8", [2 ** 63]), offsets=("<i8", [0, 1])), "ids[0]: expected a number from 0")
        for offsets in ([], [0], [1, 3], [0, 2, 1, 3], [0, 4], [0, 2], [0, -1, 3], [0, 2 ** 62, 3]):
            self.refused(str(offsets), npz(ids=good["ids"], offsets=("<i8", offsets)), "offsets")
        self.refused("fewer degrees", npz(**good, halo=("<i8", [1, 2]), halo_degree=("<u4", [1])), "halo_degree: expected an entry for each")
        self.refused("halo twice", npz(**good, halo=("<i8", [3, 2, 3])), "found 3 twice")
        self.refused("cut", content[:-30], ".npz archive")
        self.refused("damaged", content[:50] + b"\xff" + content[51:], "ids")
        central = content.index(b"PK\1\2")
        self.refused("a bomb", content[:central + 24] + struct.pack("<I", 2 ** 31) + content[central + 28:], "found 2147483648")

    def test_text(self):
        self.put(b"1\n2\n\n-\n\n3\n")
        code, out, err, _ = run("inspect", self.path)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"minibatches +3\n")
        self.refused("two in a line", b"1\n2 3\n", "line 2, byte 4: expected nothing but one id in a line")
        self.refused("too large", b"9223372036854775808", "line 1, byte 18")
        self.refused("words", b"1\nhello\n", 'line 2, byte 2: expected an id, "-", or a comment, found "h"')
        self.refused("a control byte", b"1\n\x1b[2J\n", "found the byte 1b")
        self.refused("no blank lines", b"1\n" * (2 ** 22 + 1), "expected a blank line after at most 4194304 ids")
        self.refused("a line without end", b"1" * 10 ** 7, "line 1, byte 19")


class Import(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def put(self, name, text):
        with open(f"{self.root}/{name}", "w") as file:
            file.write(text)
        return f"{self.root}/{name}"

    def test_what_text_lacks(self):
        trace, halo = self.put("ids.txt", "10\n25\n\n11\n"), self.put("halo.txt", "# id degree\n10 3\n\n25\t4294967295\n11 0")
        output = f"{self.root}/out.rtr"
        code, out, err, _ = run("import-trace", trace, "-o", output, "--halo", halo, "--owners", "0,10,20,30", "--rank", 0,
                                "--graph", "toy", "--row-bytes", "1KiB", "--steps-per-epoch", 2)
        self.assertEqual((code, err), (0, ""))
        for text in (r"graph +toy", r"rank +0 of 3, owners known", r"halo +3\n", r"row bytes +1 024", r"minibatches +2\n", r"distinct ids +3\n"):
            self.assertRegex(out, text)
        shown = run("inspect", output)[1]
        self.assertEqual(shown.split("\n\n")[1].strip(), out.split("\n\n")[0].strip())
        code, _, err, _ = run("import-trace", trace, "-o", output)
        self.assertEqual(code, 2)
        self.assertIn("--force replaces it", err)
        self.assertEqual(run("import-trace", output, "-o", output, "--force", "--graph", "other")[0], 0)
        self.assertRegex(run("inspect", output)[1], r"graph +other")
        self.assertRegex(run("inspect", output)[1], r"halo +3\n")

    def test_a_pipe(self):
        trace = self.put("ids.txt", "10\n25\n\n11\n")
        with open(trace, "rb") as file:
            reading, writing = os.pipe()
            os.write(writing, file.read())
            os.close(writing)
            code, out, err, _ = run("import-trace", "/dev/stdin", "-o", f"{self.root}/out.rtr", given=reading)
            os.close(reading)
        self.assertEqual((code, err), (0, ""))
        with open(f"{self.root}/out.rtr", "rb") as file:
            reading, writing = os.pipe()
            os.write(writing, file.read())
            os.close(writing)
            code, out, err, _ = run("inspect", "/dev/stdin", given=reading)
            os.close(reading)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"remote ids +3")

    def test_bad_options(self):
        trace, output = self.put("ids.txt", "10\n25\n"), f"{self.root}/out.rtr"
        for options, says in ((["--owners", "5"], "--owners"), (["--owners", "5,4"], "--owners"), (["--owners", "1,x"], "--owners"),
                              (["--owners", "1,2,"], "--owners"), (["--owners", ""], "--owners"), (["--rank", 1], "--rank"),
                              (["--owners", "0,9,30", "--rank", 2], "--rank"), (["--owners", "0,20,30"], "found 10"),
                              (["--owners", "0,9,20"], "found 25"), (["--row-bytes", "x"], "row-bytes")):
            with self.subTest(options=options):
                code, _, err, _ = run("import-trace", trace, "-o", output, *options)
                self.assertEqual(code, 2, err)
                self.assertIn(says, err)
                self.assertEqual(os.listdir(self.root), ["ids.txt"])
        self.assertEqual(run("import-trace", trace)[0], 2)

    def test_bad_halo(self):
        trace, output = self.put("ids.txt", "10\n25\n"), f"{self.root}/out.rtr"
        for text, says in (("x\n", "line 1"), ("1\n2 3\n", "line 2: expected degrees in all lines or in none"), ("1 2 3\n", "line 1"),
                           ("1 4294967296\n", "line 1"), ("9223372036854775808\n", "line 1"), ("1\n1\n", "found 1 twice"), ("-1\n", "line 1"),
                           ("1x\n", "line 1"), ("1\n" + "2" * 400, "line 2"), ("1\n2\0\n", "line 2"), ("1 -2\n", "line 1")):
            with self.subTest(text=text[:20]):
                halo = self.put("halo.txt", text)
                code, _, err, _ = run("import-trace", trace, "-o", output, "--halo", halo)
                self.assertEqual(code, 3, err)
                self.assertIn(says, err)
                self.assertIn(halo, err)
        for path in (self.root, f"{self.root}/absent"):
            self.assertEqual(run("import-trace", trace, "-o", output, "--halo", path)[0], 3)

    def test_full_disk(self):
        """A limit on the size of files stands for it: told, exit code 3, nothing left."""
        trace = self.put("ids.txt", "".join(f"{i * i * 7919 % 1000003}\n" + ("\n" if i % 100 == 0 else "") for i in range(300000)))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        ignore = ["sh", "-c", 'trap "" XFSZ; exec "$@"', "sh"]  # the signal; write() then fails
        done = subprocess.run([*ignore, RUDDER, "import-trace", trace, "-o", f"{self.root}/out.rtr"], capture_output=True,
                              text=True, env=ENVIRONMENT, preexec_fn=limit)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cannot be written", done.stderr)
        self.assertEqual(os.listdir(self.root), ["ids.txt"])


if __name__ == "__main__":
    unittest.main()
