#!/usr/bin/env python3
"""The PyTorch side of tools/bench: training steps of the models of `weft bench` (tools/benchmarks/models.cc), as a PyTorch
user would write them.

A step is the same work: gradients cleared, forward, backward, clipping to norm 1, AdamW; f32, no dropout. Attention is
PyTorch's fused scaled_dot_product_attention, the optimizer its fused AdamW; --compile adds torch.compile. Sequences of unequal
length are padded to the longest, as usual in PyTorch; padded keys are masked and padded targets do not count. Shape letters:
B batch, T time, D width.

Prints one JSON object: median and least time of a step in ms, real target tokens, parameters, peak memory of the process in MB
(2^20 bytes).
"""

import argparse
import dataclasses
import json
import math
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

WARM_UP_STEPS = 3
IGNORED = -100  # the label of padding


@dataclasses.dataclass(frozen=True)
class Suite:
    layers: int  # of the decoder, and of the encoder where there is one
    heads: int
    width: int
    vocabulary: int
    batch: int
    length: int  # of every sequence; when ragged, at most
    encoder: bool = False
    bias: bool = True
    ragged: bool = False


SUITES = {
    "tiny": Suite(2, 2, 64, 65, 8, 32, bias=False),
    "nano": Suite(4, 4, 128, 65, 12, 64, bias=False),
    "baby": Suite(6, 6, 384, 65, 8, 256, bias=False),
    "gpt2": Suite(12, 12, 768, 50304, 4, 64),
    "seq2seq": Suite(3, 4, 256, 8000, 64, 24, encoder=True),
    "seq2seq_ragged": Suite(3, 4, 256, 8000, 64, 24, encoder=True, ragged=True),
}


class SelfAttention(nn.Module):
    """[B, T, D] -> [B, T, D]; one product for queries, keys and values."""

    def __init__(self, suite):
        super().__init__()
        self.heads = suite.heads
        self.inputs = nn.Linear(suite.width, 3 * suite.width, bias=suite.bias)
        self.output = nn.Linear(suite.width, suite.width, bias=suite.bias)

    def forward(self, x, causal, visible=None):
        q, k, v = self.inputs(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, is_causal=causal)
        return self.output(mixed.transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    """Queries from x [B, Tq, D]; keys and values from memory [B, Tk, D]; visible [B, 1, 1, Tk] or None."""

    def __init__(self, suite):
        super().__init__()
        self.heads = suite.heads
        self.query = nn.Linear(suite.width, suite.width, bias=suite.bias)
        self.keys_values = nn.Linear(suite.width, 2 * suite.width, bias=suite.bias)
        self.output = nn.Linear(suite.width, suite.width, bias=suite.bias)

    def forward(self, x, memory, visible):
        q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.keys_values(memory).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.output(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Pre-norm: x + f(norm(x)) for self-attention, cross-attention (if any) and a feed-forward net with GELU."""

    def __init__(self, suite, causal, cross):
        super().__init__()
        self.causal = causal
        self.self_norm = nn.LayerNorm(suite.width, bias=suite.bias)
        self.self_attention = SelfAttention(suite)
        if cross:
            self.cross_norm = nn.LayerNorm(suite.width, bias=suite.bias)
            self.cross_attention = CrossAttention(suite)
        self.feed_norm = nn.LayerNorm(suite.width, bias=suite.bias)
        self.feed_forward = nn.Sequential(
            nn.Linear(suite.width, 4 * suite.width, bias=suite.bias),
            nn.GELU(),
            nn.Linear(4 * suite.width, suite.width, bias=suite.bias),
        )

    def forward(self, x, visible=None, memory=None, memory_visible=None):
        x = x + self.self_attention(self.self_norm(x), self.causal, visible)
        if memory is not None:
            x = x + self.cross_attention(self.cross_norm(x), memory, memory_visible)
        return x + self.feed_forward(self.feed_norm(x))


class Stack(nn.Module):
    """All layers and the norm behind the last."""

    def __init__(self, suite, causal, cross=False):
        super().__init__()
        self.layers = nn.ModuleList(Layer(suite, causal, cross) for _ in range(suite.layers))
        self.norm = nn.LayerNorm(suite.width, bias=suite.bias)

    def forward(self, x, *context):
        for layer in self.layers:
            x = layer(x, *context)
        return self.norm(x)


class LanguageModel(nn.Module):
    """Decoder only, learned positions; the embedding is the output layer too. Returns the mean loss of a label."""

    def __init__(self, suite):
        super().__init__()
        self.tokens = nn.Embedding(suite.vocabulary, suite.width)
        self.positions = nn.Embedding(suite.length, suite.width)
        self.decoder = Stack(suite, causal=True)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions.weight[:ids.shape[1]]
        logits = F.linear(self.decoder(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class EncoderDecoder(nn.Module):
    """Sinusoidal positions; one embedding for source, target and output. Returns the mean loss of a real
    label, smoothed by 0.1."""

    def __init__(self, suite):
        super().__init__()
        self.tokens = nn.Embedding(suite.vocabulary, suite.width)
        self.encoder = Stack(suite, causal=False)
        self.decoder = Stack(suite, causal=True, cross=True)
        self.scale = math.sqrt(suite.width)
        nn.init.normal_(self.tokens.weight, std=1 / self.scale)
        angles = torch.arange(suite.length)[:, None] * 10000.0**(-torch.arange(0, suite.width, 2) / suite.width)
        self.register_buffer("waves", torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1))

    def embed(self, ids):
        return self.tokens(ids) * self.scale + self.waves[:ids.shape[1]]

    def forward(self, source, target, labels, visible):
        memory = self.encoder(self.embed(source), visible)
        # The targets' own padding comes after all real ones, where the causal mask hides it.
        logits = F.linear(self.decoder(self.embed(target), None, memory, visible), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, label_smoothing=0.1)


def make_batch(suite):
    """The arguments of the model's forward, with random ids, and the number of real target tokens."""
    def ids(length):
        return torch.randint(suite.vocabulary, (suite.batch, length))

    if not suite.encoder:
        return (ids(suite.length), ids(suite.length)), suite.batch * suite.length
    if not suite.ragged:
        return (ids(suite.length), ids(suite.length), ids(suite.length), None), suite.batch * suite.length
    # Lengths 4 to 22, those of tools/benchmarks/models.cc.
    number = torch.arange(suite.batch)
    source_lengths, target_lengths = 4 + 7 * number % 19, 4 + (11 * number + 5) % 19
    source_length, target_length = int(source_lengths.max()), int(target_lengths.max())
    visible = torch.arange(source_length) < source_lengths[:, None]
    labels = ids(target_length).masked_fill(torch.arange(target_length) >= target_lengths[:, None], IGNORED)
    return (ids(source_length), ids(target_length), labels, visible[:, None, None, :]), int(target_lengths.sum())


def time_steps(model, batch, steps, compiled):
    """Seconds of each of `steps` training steps, after the warm-up."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_of = torch.compile(model) if compiled else model
    seconds = []
    for _ in range(WARM_UP_STEPS + steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss_of(*batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return seconds[WARM_UP_STEPS:]


def main():
    parser = argparse.ArgumentParser(description="Times training steps in PyTorch; see tools/bench, which runs it.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--steps", type=int, default=10, help="timed steps (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="default: PyTorch's own choice")
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    suite = SUITES[arguments.suite]
    model = EncoderDecoder(suite) if suite.encoder else LanguageModel(suite)
    batch, tokens = make_batch(suite)
    seconds = time_steps(model, batch, arguments.steps, arguments.compile)
    print(json.dumps({
        "suite": arguments.suite,
        "version": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "tokens": tokens,
        "steps": len(seconds),
        "median_ms": statistics.median(seconds) * 1e3,
        "min_ms": min(seconds) * 1e3,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }))


if __name__ == "__main__":
    main()
