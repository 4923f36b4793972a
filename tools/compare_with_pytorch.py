"""What tools/bench runs: builds Weft, makes a Python environment with PyTorch, times training steps of both in turns (or, with
--products, matrix products: compare_products.py), writes one table.

Each measurement is a process of its own (`weft bench --suite NAME` or tools/bench_peer.py), so that peak memory can be told
apart. Within a round the sides follow each other suite by suite; slow changes of the machine's speed then meet all of them
alike. Needs Python's standard library only.
"""

import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import platform
import resource
import shlex
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile

import compare_products

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = ["tiny", "nano", "baby", "gpt2", "seq2seq", "seq2seq_ragged"]
VENV = ROOT / "build/bench-venv"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
MAX_LOAD = 0.5  # processes that want to run, at the start
MAX_OTHERS = 0.05  # of all processor time, while measuring
# What caps each side at AVX2: Weft; PyTorch's own kernels and those it compiles; its libraries oneDNN and MKL.
AVX2_CAP = {"WEFT_SIMD": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


class Failure(Exception):
    """Something the user can see to; the message says what."""


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/bench",
        description="Times training steps of Weft and PyTorch on this machine, in turns, and prints one table. Builds Weft and "
        "installs PyTorch in build/bench-venv, where they are missing. Let nothing else run meanwhile.")
    parser.add_argument("--suite", action="append", choices=SUITES, metavar="NAME",
                        help=f"one of {', '.join(SUITES)}; repeatable (default: all)")
    parser.add_argument("--products", action="store_true", help="matrix products in place of training steps")
    parser.add_argument("--rounds", type=int, default=3, metavar="R",
                        help="measurements of each, whose median counts (default: %(default)s)")
    parser.add_argument("--threads", type=int, metavar="N", help="of both sides (default: one for each core)")
    parser.add_argument("--simd", choices=["avx2"], help="let neither side use more, to stand in for a machine without AVX-512")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--torch", metavar="VERSION", help="of PyTorch (default: the one installed before, else the newest)")
    parser.add_argument("--python", metavar="PATH", help="an interpreter that has PyTorch, in place of build/bench-venv")
    parser.add_argument("--weft", metavar="PATH", help="a built program, in place of building one")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench", metavar="FOLDER",
                        help="for results.json and results.md, or products.* (default: build/bench)")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or (options.threads is not None and options.threads < 1):
        parser.error("--rounds and --threads must be 1 or more")
    if options.python and options.torch:
        parser.error("--torch chooses what to install, --python takes what is there: give one of them")
    if options.products and (options.suite or options.no_compile):
        parser.error("--products times no training steps: leave --suite and --no-compile out")
    options.suites = [suite for suite in SUITES if not options.suite or suite in options.suite]
    options.sides = ["weft", "eager"] + ([] if options.no_compile else ["compiled"])
    options.threads = options.threads or core_count()
    return options


# --- What is needed before anything can be timed ---


def run(*command):
    try:
        subprocess.run([str(word) for word in command], cwd=ROOT, check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        raise Failure(f"{shlex.join(error.cmd)} failed") from error


def build_weft():
    run("tools/install_packages")
    cache = ROOT / "build/release/CMakeCache.txt"
    tests = cache.exists() and "WEFT_BUILD_TESTS:BOOL=ON" in cache.read_text()
    run("cmake", "--preset", "release", f"-DWEFT_BUILD_TESTS={'ON' if tests else 'OFF'}")
    run("cmake", "--build", "--preset", "release", "--target", "weft")
    return ROOT / "build/release/tools/weft"


def torch_version(python):
    """That of this interpreter; "" if it has none."""
    found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else ""


def make_environment(options):
    """The interpreter of a virtual environment with PyTorch."""
    python = VENV / "bin/python"
    installed = torch_version(python) if python.exists() else ""
    if installed and options.torch in (None, installed, installed.split("+")[0]):
        return python
    headers = pathlib.Path(sysconfig.get_path("include")) / "Python.h"  # torch.compile builds Python modules
    if importlib.util.find_spec("ensurepip") is None or not headers.exists():
        run("tools/install_packages", "--bench")
    if not python.exists():
        run(sys.executable, "-m", "venv", VENV)
    torch = f"torch=={options.torch}" if options.torch else "torch"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    print(f"Installing PyTorch in {VENV}", file=sys.stderr)
    try:
        run(*pip, "--retries", "1", "--timeout", "10", torch, "numpy", "--index-url", CPU_WHEELS)
    except Failure:
        print(f"Not from {CPU_WHEELS}; now from PyPI, whose PyTorch brings GPU libraries: some GB", file=sys.stderr)
        run(*pip, torch, "numpy")
    return python


# --- The machine ---


def core_count():
    """Physical cores that this process may use: what PyTorch would choose."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.exists() else cpu)
    return len(cores)


def field_of(path, name):
    """The text behind the first `name:` in a file like /proc/cpuinfo; "" if there is none."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


def output_of(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def describe_machine(options):
    flags = field_of("/proc/cpuinfo", "flags").split()
    names = {"avx512f": "AVX-512", "avx2": "AVX2", "sse4_1": "SSE4"}
    best = next((name for flag, name in names.items() if flag in flags), platform.machine())
    processor = field_of("/proc/cpuinfo", "model name")
    if not processor:
        processor = output_of("lscpu").partition("Model name:")[2].partition("\n")[0].strip()
    model = "/".join(field_of("/proc/cpuinfo", name) for name in ("cpu family", "model", "stepping"))
    return {
        "processor": f"{processor or platform.machine()}" + (f" (family/model/stepping {model})" if model.strip("/") else ""),
        "processors": os.cpu_count(),
        "instructions": f"AVX2, capped on both sides; the machine has {best}" if options.simd else best,
        "memory_gb": round(int(field_of("/proc/meminfo", "MemTotal").split()[0]) / 2**20, 1),
        "kernel": platform.release(),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


class OtherWork:
    """The share of all processor time that went to other processes since this was made, or to other guests of the same host."""

    def __init__(self):
        self.start = self.read()

    @staticmethod
    def read():
        """Seconds: of busy processors, of all processors, of our finished children."""
        with open("/proc/stat", encoding="utf-8") as lines:
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, lines.readline().split()[1:9])
        busy, tick = user + nice + system + irq + softirq + steal, os.sysconf("SC_CLK_TCK")
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return busy / tick, (busy + idle + iowait) / tick, children.ru_utime + children.ru_stime

    def share(self):
        busy, total, ours = (now - then for now, then in zip(self.read(), self.start))
        return max(0.0, busy - ours) / max(total, 1e-9)


# --- Measuring ---


def environment(options):
    """That of both sides: the caller's, except that nothing but --simd chooses instructions."""
    variables = {name: value for name, value in os.environ.items() if name not in AVX2_CAP}
    variables["TORCHINDUCTOR_CACHE_DIR"] = str(options.output / "compiled")
    variables["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no helper processes, which would count as other work
    if options.simd:
        variables.update(AVX2_CAP)
    return variables


def measure(side, suite, steps, options):
    """The JSON object that one process of a side prints. `steps` of the suite, for PyTorch."""
    if side == "weft":
        command = [options.weft, "bench", "--json", "--suite", suite, "--threads", options.threads]
    else:
        command = [options.python, ROOT / "tools/bench_peer.py", suite, "--threads", options.threads, "--steps", steps]
        command += ["--compile"] if side == "compiled" else []
    hint = "; --no-compile leaves torch.compile out" if side == "compiled" else ""
    return run_json(command, options, hint=hint)[-1]


def run_json(command, options, stdin="", hint=""):
    """The JSON objects that a command prints, one a line."""
    command = [str(word) for word in command]
    result = subprocess.run(command, cwd=ROOT, env=environment(options), input=stdin, capture_output=True, text=True)
    try:
        lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
        if result.returncode == 0 and lines:
            return lines
    except ValueError:
        pass
    raise Failure(f"{result.stderr or result.stdout}\n{shlex.join(command)} failed (code {result.returncode}){hint}")


def measure_all(options):
    """A list of {"round", "side", and what measure() gives}. Fails if the sides differ in what they compute."""
    runs = []
    for number in range(1, options.rounds + 1):
        for suite in options.suites:
            first = None
            for side in options.sides:
                line = measure(side, suite, first and first["steps"], options)
                first = first or line
                for what in ("parameters", "tokens", "threads"):
                    if line[what] != first[what]:
                        raise Failure(f"suite {suite}: {first[what]} {what} in Weft, {line[what]} in PyTorch: not the same "
                                      "work")
                runs.append({"round": number, "side": side, **line})
                print(f"round {number}/{options.rounds}  {suite:<14} {side:<8} {line['median_ms']:10.3f} ms", file=sys.stderr,
                      flush=True)
    return runs


# --- Results ---


def summarise(runs):
    """One row a suite: medians over the rounds. `times_faster` is against the faster of PyTorch's two."""
    rows = []
    for suite in dict.fromkeys(line["suite"] for line in runs):
        def median(side, key):
            values = [line[key] for line in runs if (line["suite"], line["side"]) == (suite, side)]
            return statistics.median(values) if values else None

        row = {"suite": suite, "tokens": median("weft", "tokens"), "parameters": median("weft", "parameters")}
        for side in ("weft", "eager", "compiled"):
            row[f"{side}_ms"] = median(side, "median_ms")
        row["times_faster"] = min(row[f"{side}_ms"] for side in ("eager", "compiled") if row[f"{side}_ms"]) / row["weft_ms"]
        row["weft_gflops"], row["weft_share"] = median("weft", "gflops"), median("weft", "share")
        for side in ("weft", "eager", "compiled"):
            row[f"{side}_peak_mb"] = median(side, "peak_rss_mb")
        rows.append(row)
    return rows


COLUMNS = [
    ("suite", "suite", "{}"),
    ("tokens", "tokens", "{:,.0f}"),
    ("Weft, ms", "weft_ms", "{}"),
    ("PyTorch eager, ms", "eager_ms", "{}"),
    ("PyTorch compiled, ms", "compiled_ms", "{}"),
    ("times faster", "times_faster", "{:.2f}"),
    ("Weft, GF/s", "weft_gflops", "{:.1f}"),
    ("of the peak", "weft_share", "{:.1%}"),
    ("Weft, peak MB", "weft_peak_mb", "{:,.0f}"),
    ("eager, peak MB", "eager_peak_mb", "{:,.0f}"),
    ("compiled, peak MB", "compiled_peak_mb", "{:,.0f}"),
]


def milliseconds(value):
    """Three digits that count: 1.34, 22.7, 1,231."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def table_of(rows, columns):
    """Rows of text cells, the first the headings; columns that nobody measured are left out."""
    def cell(value, key, form):
        return "" if value is None else milliseconds(value) if key.endswith("_ms") else form.format(value)

    columns = [column for column in columns if rows[0][column[1]] is not None]
    return [[heading for heading, _, _ in columns]] + [[cell(row[key], key, form) for _, key, form in columns] for row in rows]


def markdown_table(table):
    lines = [table[0], ["---"] + ["---:"] * (len(table[0]) - 1), *table[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def text_table(table):
    widths = [max(map(len, column)) for column in zip(*table)]
    text = ""
    for name, *values in table:
        cells = [name.ljust(widths[0])] + [value.rjust(width) for value, width in zip(values, widths[1:])]
        text += "  ".join(cells) + "\n"
    return text


def warnings_of(report):
    warnings = []
    if report["machine"]["load_at_start"] > MAX_LOAD:
        warnings.append(f"The machine was not idle at the start: a load average of {report['machine']['load_at_start']}.")
    if report["others_share"] > MAX_OTHERS:
        warnings.append(f"Others took {report['others_share']:.0%} of the processor time meanwhile. This slows PyTorch more "
                        "than Weft: measure again when the machine is idle.")
    return warnings


def conditions(report):
    """Lines that say how the table came about."""
    machine = report["machine"]
    threads = f"{report['threads']} threads" + ("" if "suites" in report else " at most")
    return [
        f"Machine: {machine['processor']}, {machine['processors']} processors, {machine['memory_gb']} GB; "
        f"{machine['instructions']}; Linux {machine['kernel']}",
        f"Each side: {threads}, f32; rounds, in turns: {report['rounds']}, of which the median; others took "
        f"{report['others_share']:.1%} of the processor time",
        f"Weft {report['weft']} (commit {report['commit'] or 'unknown'}), PyTorch {report['pytorch']}; {report['date']}",
        f"Command: {report['command']}",
    ]


def markdown_of(report, title, table, remark):
    text = f"# {title}\n\n" + "".join(f"- {line}\n" for line in conditions(report))
    text += "\n" + markdown_table(table) + f"\n{remark}\n"
    return text + "".join(f"\n**{warning}**\n" for warning in warnings_of(report))


def replace(path, text):
    """Writes a file whole or not at all."""
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def main(arguments):
    options = parse(arguments)
    machine = describe_machine(options)
    if machine["load_at_start"] > MAX_LOAD:
        print(f"Warning: the machine is not idle (load average {machine['load_at_start']}); figures will be worse than they "
              "should be.", file=sys.stderr)
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=options.output):
        pass  # it can be written, which is better known now than after an hour
    options.weft = pathlib.Path(options.weft).absolute() if options.weft else build_weft()
    options.python = pathlib.Path(options.python).absolute() if options.python else make_environment(options)

    others = OtherWork()
    if options.products:
        runs = compare_products.measure_all(options, lambda *command, stdin="": run_json(command, options, stdin))
        rows, columns, name = compare_products.summarise(runs), compare_products.COLUMNS, "products"
        title = "Matrix products of Weft and PyTorch"
        remark = "The peak: of multiply-adds in registers, measured beside each product."
    else:
        runs = measure_all(options)
        rows, columns, name = summarise(runs), COLUMNS, "results"
        title, remark = "Training steps of Weft and PyTorch", "Times faster: than the faster of PyTorch's columns."
    report = {
        "command": shlex.join(["tools/bench", *arguments]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": output_of("git", "describe", "--always", "--dirty"),
        "weft": output_of(str(options.weft), "--version").removeprefix("weft "),
        "pytorch": next(line["version"] for line in runs if line["side"] != "weft"),
        "machine": machine,
        "threads": options.threads,
        "simd": options.simd,
        "rounds": options.rounds,
        "others_share": round(others.share(), 4),
        "products" if options.products else "suites": rows,
        "runs": runs,
    }
    table = table_of(rows, columns)
    replace(options.output / f"{name}.json", json.dumps(report, indent=1) + "\n")
    replace(options.output / f"{name}.md", markdown_of(report, title, table, remark))
    print(text_table(table) + "".join(f"\n{line}" for line in conditions(report)))
    for warning in warnings_of(report):
        print(f"Warning: {warning}")
    print(f"Written: {options.output}/{name}.json and {name}.md")


if __name__ == "__main__":
    # As an exception, so that the process being timed ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        main(sys.argv[1:])
    except (Failure, compare_products.NotTheSame, OSError) as failure:
        sys.exit(f"tools/bench: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
