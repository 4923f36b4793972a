"""tools/bench without network, PyTorch or a build: small programs stand in for both sides and print canned lines."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import compare_with_pytorch as bench  # noqa: E402 (found through the path above)

# Times of a side are those below, one a call; every call is logged with what it is told about instruction sets.
STAND_IN = """#!{interpreter} -B
import json, os, pathlib, sys, time
if "--version" in sys.argv:
    sys.exit(print("weft 1.2.3"))
folder = pathlib.Path(__file__).parent
side = "weft" if "bench" in sys.argv else "compiled" if "--compile" in sys.argv else "eager"
suite = sys.argv[sys.argv.index("--suite") + 1] if side == "weft" else sys.argv[2]
calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
before = sum(call.startswith(side + " " + suite + " ") for call in calls)
caps = ("WEFT_SIMD", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
simd = [os.environ.get(name, "") for name in caps]
with open(folder / "calls", "a") as log:
    log.write(" ".join([side, suite, "simd=" + ",".join(simd), *sys.argv[1:]]) + "\\n")
if side in os.environ.get("HANGS", ""):
    (folder / "hanging").write_text(str(os.getpid()))
    time.sleep(60)
if side in os.environ.get("FAILS", ""):
    sys.exit("no such thing")
times = dict(weft=[1, 9, 2], eager=[50, 4, 5], compiled=[3, 3.5, 30])
line = dict(suite=suite, threads=2, tokens=256, steps=7, median_ms=times[side][before],
            parameters=int(os.environ.get("PARAMETERS", 100)) if side == "eager" else 100,
            peak_rss_mb=dict(weft=16, eager=700, compiled=1800)[side])
line.update(dict(gflops=131.25, share=0.305) if side == "weft" else dict(version="9.8"))
print(json.dumps(line))
"""


# The same for products: two of nano, one of each other model.
PRODUCTS = """#!{interpreter} -B
import json, os, pathlib, sys
if "--version" in sys.argv:
    sys.exit(print("weft 1.2.3"))
folder = pathlib.Path(__file__).parent
with open(folder / "calls", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if "bench" in sys.argv:
    if sys.argv[sys.argv.index("--case") + 1] != "nano/":
        sys.exit(print(json.dumps(dict(case=sys.argv[-3] + "other", kind="NN", m=100, n=100, k=100, threads=1, median_ms=1,
                                       peak_gflops=4))))
    for kind, k in (("NT", 1000), ("TN", 500)):
        print(json.dumps(dict(case="nano/" + kind, kind=kind, m=1000, n=1000, k=k, threads=2, median_ms=10, peak_gflops=400)))
else:
    for line in map(json.loads, sys.stdin):
        times = dict(NT=25, TN=5, NN=2)
        print("PyTorch says something")
        print(json.dumps(dict(case=line["case"], version="9.8", threads=int(os.environ.get("THREADS", line["threads"])),
                              median_ms=times[line["kind"]])))
"""


class BenchScriptTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.stand_in = self.folder / "stand_in"
        self.stand_in.write_text(STAND_IN.format(interpreter=sys.executable))
        self.stand_in.chmod(0o755)

    def command(self, *arguments, output="out"):
        return [str(word) for word in (ROOT / "tools/bench", "--weft", self.stand_in, "--python", self.stand_in, "--output",
                                       self.folder / output, "--threads", "2", *arguments)]

    def run_bench(self, *arguments, **variables):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, env={**os.environ, **variables})

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def test_sides_take_turns_and_medians_of_the_rounds_count(self):
        result = self.run_bench("--suite", "nano", "--suite", "tiny")
        self.assertEqual(result.returncode, 0, result.stderr)
        turns = [" ".join(call.split()[:2]) for call in self.calls()]
        one_round = [f"{side} {suite}" for suite in ("tiny", "nano") for side in ("weft", "eager", "compiled")]
        self.assertEqual(turns, 3 * one_round)
        report = json.loads((self.folder / "out/results.json").read_text())
        self.assertEqual([row["suite"] for row in report["suites"]], ["tiny", "nano"])
        row = report["suites"][0]
        self.assertEqual([row["weft_ms"], row["eager_ms"], row["compiled_ms"]], [2, 5, 3.5])
        self.assertEqual(row["times_faster"], 3.5 / 2)
        self.assertEqual([row["weft_peak_mb"], row["eager_peak_mb"], row["compiled_peak_mb"]], [16, 700, 1800])
        self.assertEqual([report["weft"], report["pytorch"], report["rounds"], report["threads"]], ["1.2.3", "9.8", 3, 2])
        self.assertEqual(len(report["runs"]), 3 * 2 * 3)
        self.assertIn("--suite nano --suite tiny", report["command"])
        for key in ("processor", "processors", "instructions", "memory_gb", "kernel"):
            self.assertTrue(report["machine"][key], key)

    def test_markdown_has_the_table_and_where_it_was_measured(self):
        result = self.run_bench("--suite", "tiny")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = (self.folder / "out/results.md").read_text()
        self.assertIn("| tiny | 256 | 2.00 | 5.00 | 3.50 | 1.75 | 131.2 | 30.5% | 16 | 700 | 1,800 |\n", text)
        self.assertIn("Weft 1.2.3 ", text)
        self.assertIn("PyTorch 9.8", text)
        self.assertRegex(result.stdout, r"(?m)^tiny +256 +2\.00 +5\.00 +3\.50 +1\.75 ")

    def test_pytorch_runs_as_many_steps_and_threads_as_weft(self):
        self.run_bench("--suite", "tiny", "--rounds", "1")
        self.assertIn("--suite tiny --threads 2", self.calls()[0])
        for call in self.calls()[1:]:
            self.assertIn("tools/bench_peer.py tiny --threads 2 --steps 7", call)

    def test_without_compile_there_is_no_such_column(self):
        result = self.run_bench("--suite", "tiny", "--no-compile")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("compiled", result.stdout + " ".join(self.calls()))
        self.assertEqual(json.loads((self.folder / "out/results.json").read_text())["suites"][0]["times_faster"], 5 / 2)

    def test_simd_caps_both_sides_and_nothing_else_does(self):
        result = self.run_bench("--suite", "tiny", "--rounds", "1", "--simd", "avx2")
        self.assertIn("AVX2, capped on both sides", result.stdout)
        for call in self.calls():
            self.assertIn(" simd=avx2,avx2,AVX2,AVX2 ", call)
        (self.folder / "calls").unlink()
        result = self.run_bench("--suite", "tiny", "--rounds", "1", WEFT_SIMD="baseline", ATEN_CPU_CAPABILITY="default")
        self.assertNotIn("capped", result.stdout)
        for call in self.calls():
            self.assertIn(" simd=,,, ", call)

    def test_sides_that_do_not_do_the_same_are_refused(self):
        result = self.run_bench("--suite", "tiny", PARAMETERS="101")
        self.assertEqual(result.returncode, 1)
        self.assertIn("suite tiny: 100 parameters in Weft, 101 in PyTorch", result.stderr)
        self.assertFalse((self.folder / "out/results.json").exists())

    def test_a_side_that_fails_is_named(self):
        result = self.run_bench("--suite", "tiny", FAILS="compiled")
        self.assertEqual(result.returncode, 1)
        for part in ("no such thing", "bench_peer.py tiny", "--no-compile leaves"):
            self.assertIn(part, result.stderr)

    def test_an_end_by_signal_ends_what_is_being_timed(self):
        bench_process = subprocess.Popen(self.command("--suite", "tiny"), env={**os.environ, "HANGS": "eager"})
        self.addCleanup(bench_process.kill)
        hanging = self.folder / "hanging"
        self.wait_until(lambda: hanging.exists() and hanging.read_text())
        bench_process.terminate()
        self.assertEqual(bench_process.wait(timeout=30), 143)
        self.assertFalse(pathlib.Path("/proc", hanging.read_text()).exists())

    def wait_until(self, condition):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.05)
        self.fail("not within 30 seconds")

    def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(self):
        (self.folder / "file").write_text("")
        for output in ("file", "file/below", "/proc"):  # in the last not even root makes files
            result = subprocess.run(self.command("--suite", "tiny", output=output), capture_output=True, text=True)
            self.assertEqual(result.returncode, 1)
            self.assertIn(str(self.folder / output), result.stderr)
        self.assertFalse((self.folder / "calls").exists())

    def test_products_are_compared_case_by_case_and_kind_by_kind(self):
        self.stand_in.write_text(PRODUCTS.format(interpreter=sys.executable))
        result = self.run_bench("--products", "--rounds", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        calls = self.calls()
        self.assertEqual(len(calls), 2 * 2 * 6)
        self.assertTrue(calls[0].startswith("bench --json --suite gemm --case tiny/ --threads 2"), calls[0])
        self.assertTrue(calls[1].endswith("tools/bench_peer_products.py"), calls[1])
        report = json.loads((self.folder / "out/products.json").read_text())
        rows = {row["case"]: row for row in report["products"]}
        for case, key, value in (("nano/NT", "weft_gflops", 200), ("nano/NT", "pytorch_gflops", 80),
                                 ("nano/NT", "times_faster", 2.5), ("nano/TN", "weft_share", 0.25),
                                 ("nano/TN", "pytorch_share", 0.5), ("NT, mean of 1", "times_faster", 2.5),
                                 ("NN, mean of 5", "weft_share", 0.5)):
            self.assertAlmostEqual(rows[case][key], value, msg=f"{case} {key}")
        self.assertEqual(report["pytorch"], "9.8")
        text = (self.folder / "out/products.md").read_text()
        self.assertIn("Each side: 2 threads at most", text)
        self.assertIn("| nano/NT | 2 | 200.0 | 80.0 | 2.50 | 50.0% | 20.0% |\n", text)
        self.assertIn("| NT, mean of 1 |  |  |  | 2.50 | 50.0% | 20.0% |\n", text)

    def test_sides_that_do_not_do_the_same_products_are_refused(self):
        self.stand_in.write_text(PRODUCTS.format(interpreter=sys.executable))
        result = self.run_bench("--products", THREADS="3")
        self.assertEqual(result.returncode, 1)
        self.assertIn("products of tiny, with threads: [('tiny/other', 1)] in Weft, [('tiny/other', 3)] in PyTorch", result.stderr)
        self.assertFalse((self.folder / "out/products.json").exists())

    def test_products_are_no_training_steps(self):
        for other in (["--suite", "tiny"], ["--no-compile"]):
            result = self.run_bench("--products", *other)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--products times no training steps", result.stderr)

    def test_the_groups_of_products_are_those_of_the_suite(self):
        source = (ROOT / "tools/benchmarks/gemm.cc").read_text()
        models = dict.fromkeys(re.findall(r'\{"(\w+)", \d+, \d+, \d+\}', source))
        self.assertEqual(bench.compare_products.MODELS, list(models))

    def test_help_names_the_suites_and_unknown_ones_are_refused(self):
        self.assertIn("seq2seq_ragged", self.run_bench("--help").stdout)
        result = self.run_bench("--suite", "huge")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "'huge'.*tiny.*gpt2")
        self.assertEqual(self.run_bench("--rounds", "0").returncode, 2)

    def test_a_busy_machine_is_told(self):
        quiet = {"machine": {"load_at_start": 0.1}, "others_share": 0.01}
        self.assertEqual(bench.warnings_of(quiet), [])
        loaded = bench.warnings_of({**quiet, "machine": {"load_at_start": 1.5}})
        self.assertRegex(" ".join(loaded), "^The machine was not idle at the start: a load average of 1.5")
        shared = bench.warnings_of({**quiet, "others_share": 0.25})
        self.assertRegex(" ".join(shared), "^Others took 25%")

    def test_the_models_of_both_sides_have_the_same_sizes(self):
        source = (ROOT / "tools/benchmarks/models.cc").read_text()
        weft = {}
        for fields in re.findall(r'^    \{("\w+", (?:true|false), .*)\},$', source, re.MULTILINE):
            name, decoder, vocabulary, window, layers, heads, width, bias, batch, ragged, _ = ast.literal_eval(
                "(" + fields.replace("true", "True").replace("false", "False") + ")")
            weft[name] = [layers, heads, width, vocabulary, batch, window, not decoder, bias, ragged]
        # The script imports PyTorch, so it is read, not imported.
        tree = ast.parse((ROOT / "tools/bench_peer.py").read_text())
        table = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "SUITES")
        peer = {}
        for key, call in zip(table.keys, table.values):
            named = {"encoder": False, "bias": True, "ragged": False, **{word.arg: word.value.value for word in call.keywords}}
            peer[key.value] = [value.value for value in call.args] + [named[name] for name in ("encoder", "bias", "ragged")]
        self.assertEqual(peer, weft)
        self.assertEqual(bench.SUITES, list(weft))


if __name__ == "__main__":
    unittest.main()
