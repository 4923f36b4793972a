"""What tools/bench --products measures: the matrix products of `weft bench --suite gemm`, in Weft and in PyTorch, whose
products are those of oneMKL on x86. Used by compare_with_pytorch.py. Needs Python's standard library only.
"""

import json
import math
import pathlib
import statistics
import sys

PEER = pathlib.Path(__file__).resolve().parent / "bench_peer_products.py"
# The groups of cases, in tools/benchmarks/gemm.cc, between which the sides take turns.
MODELS = ["tiny", "nano", "gpt2", "baby", "seq2seq", "large"]
KINDS = ["NT", "NN", "TN"]

COLUMNS = [
    ("product", "case", "{}"),
    ("threads", "threads", "{}"),
    ("Weft, GF/s", "weft_gflops", "{:.1f}"),
    ("PyTorch, GF/s", "pytorch_gflops", "{:.1f}"),
    ("times faster", "times_faster", "{:.2f}"),
    ("Weft, of the peak", "weft_share", "{:.1%}"),
    ("PyTorch, of the peak", "pytorch_share", "{:.1%}"),
]


class NotTheSame(Exception):
    """The sides did not do the same products; the message says which."""


def measure_all(options, run_json):
    """A list of {"round", "side", and what the side prints}. `run_json(*command, stdin="")` gives the JSON objects that a
    command prints. Fails if the sides differ in what they compute."""
    runs = []
    for number in range(1, options.rounds + 1):
        for model in MODELS:
            weft = run_json(options.weft, "bench", "--json", "--suite", "gemm", "--case", f"{model}/", "--threads",
                            options.threads)
            pytorch = run_json(options.python, PEER, stdin="".join(f"{json.dumps(line)}\n" for line in weft))
            done = [[(line["case"], line["threads"]) for line in lines] for lines in (weft, pytorch)]
            if done[0] != done[1]:
                raise NotTheSame(f"products of {model}, with threads: {done[0]} in Weft, {done[1]} in PyTorch: not the same "
                                 "work")
            runs += [{"round": number, "side": side, **line} for side, lines in (("weft", weft), ("pytorch", pytorch))
                     for line in lines]
            print(f"round {number}/{options.rounds}  {model:<8} {len(weft)} products", file=sys.stderr, flush=True)
    return runs


def summarise(runs):
    """One row a product: medians over the rounds; then one row a kind: the geometric mean of the ratios and the means of the
    shares. Shares are of the peak that Weft measured beside its own product."""
    rows = []
    for case in dict.fromkeys(line["case"] for line in runs):
        sides = {side: [line for line in runs if (line["case"], line["side"]) == (case, side)] for side in ("weft", "pytorch")}
        first = sides["weft"][0]
        gflop = 2e-9 * first["m"] * first["n"] * first["k"]
        seconds = {side: statistics.median(line["median_ms"] for line in lines) / 1e3 for side, lines in sides.items()}
        peak = statistics.median(line["peak_gflops"] for line in sides["weft"])
        row = {"case": case, "kind": first["kind"], "threads": first["threads"],
               "times_faster": seconds["pytorch"] / seconds["weft"]}
        for side in sides:
            row[f"{side}_gflops"] = gflop / seconds[side]
            row[f"{side}_share"] = row[f"{side}_gflops"] / peak
        rows.append(row)
    of_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    return rows + [mean_of(kind, some) for kind, some in of_kind.items() if some]


def mean_of(kind, rows):
    """The row for all products of a kind. REQUIRES: at least one."""
    mean = {"case": f"{kind}, mean of {len(rows)}", "kind": kind, "threads": "", "weft_gflops": None, "pytorch_gflops": None}
    mean["times_faster"] = math.exp(statistics.mean(math.log(row["times_faster"]) for row in rows))
    for key in ("weft_share", "pytorch_share"):
        mean[key] = statistics.mean(row[key] for row in rows)
    return mean
