#!/usr/bin/env python3
"""The PyTorch side of tools/bench --products: the matrix products of `weft bench --suite gemm`, through torch.mm.

Reads the lines that `weft bench --suite gemm --json` prints and does each of these products, with as many threads, in the same
way: f32; once to warm up, then at least five times and 0.2 seconds; the products are those of a linear layer y = x W^T with
x [m, k], W [n, k], and gradients of weights add to what is there. Memory is what PyTorch gives; Weft's lies in huge pages where
the system has them, as in its models. Prints one JSON object a line: median and least time in ms.
"""

import json
import statistics
import sys
import time

import torch

SECONDS, LEAST = 0.2, 5


def product_of(kind, m, n, k):
    """What to call: "NT" y = x W^T, "NN" dx = dy W, "TN" dW += dy^T x."""
    x, w, dy = torch.rand(m, k) - 0.5, torch.rand(n, k) - 0.5, torch.rand(m, n) - 0.5
    if kind == "NT":
        y, across = torch.empty(m, n), w.t()
        return lambda: torch.mm(x, across, out=y)
    if kind == "NN":
        dx = torch.empty(m, k)
        return lambda: torch.mm(dy, w, out=dx)
    dw, across = torch.zeros(n, k), dy.t()
    return lambda: dw.addmm_(across, x)


def time_calls(work):
    """Seconds of each call after the first."""
    work()
    seconds, start = [], time.perf_counter()
    while len(seconds) < LEAST or time.perf_counter() - start < SECONDS:
        before = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - before)
    return seconds


def main():
    torch.manual_seed(1)
    for line in map(json.loads, sys.stdin):
        torch.set_num_threads(line["threads"])
        seconds = time_calls(product_of(line["kind"], line["m"], line["n"], line["k"]))
        print(json.dumps({
            "case": line["case"],
            "version": torch.__version__,
            "instructions": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
            "repetitions": len(seconds),
            "median_ms": statistics.median(seconds) * 1e3,
            "min_ms": min(seconds) * 1e3,
        }), flush=True)


if __name__ == "__main__":
    main()
