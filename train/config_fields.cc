// The keys of each section of a config: names, ranges and what help texts say, in one list for readers, writers and the schema.
#include "train/beam.h"
#include "train/config.h"
#include "train/config_sections.h"

namespace weft {
namespace {

// Above any real run, and far from where steps x tokens would overflow 64 bits.
constexpr double kMaxSteps = 1e12;
constexpr double kMaxCount = 2147483647;  // lengths and counts of one batch stay 32-bit safe

}  // namespace

void RunConfig::Fields(FieldVisitor& v) {
  v.Visit("dir", dir, "folder of the run, relative to the working directory");
  v.Visit("seed", seed, {.min = 0}, "decides initial weights, data order and dropout");
}

void DataConfig::Fields(FieldVisitor& v) {
  v.Choice("kind", kind, {"pairs", "text", "labels", "task"}, "form of the data files, or a rule-made task");
  v.Visit("task", task, "name of the rule-made task");
  v.Visit("dir", dir, "folder of train and valid");
  v.OneOrMore("train", train, "file to train on; pairs may be in two, sources and targets, line for line");
  v.OneOrMore("valid", valid, "file to validate on; pairs may be in two or more: sources, targets, further references");
  v.Visit("valid_fraction", valid_fraction, {.min = 0, .max = 1, .max_open = true},
          "text: last part of train that is kept for validation");
  v.Visit("window", window, {.min = 1, .max = kMaxCount}, "text: tokens of one training example");
  v.Visit("cache", cache, "folder for the token ids of large files; default a folder of the user's caches");
  v.Visit("train_size", train_size, {.min = 1, .max = kMaxCount}, "task: examples to train on");
  v.Visit("valid_size", valid_size, {.min = 1, .max = kMaxCount}, "task: held-out examples");
  v.Visit("max_source_length", max_source_length, {.min = 1, .max = kMaxCount},
          "pairs: longest source to train on, in tokens; longer pairs are left out");
  v.Visit("max_target_length", max_target_length, {.min = 1, .max = kMaxCount},
          "pairs: longest target to train on, in tokens without <eos>; longer pairs are left out");
}

void TokenizerFields(FieldVisitor& v, TokenizerOptions& options) {
  v.Choice("kind", options.kind, {"char", "byte", "word", "bpe", "unigram"}, "what a token is");
  v.Visit("unknown", options.unknown,
          "word, and bpe and unigram with byte_fallback = false: read what is outside the vocabulary as <unk>");
  v.Visit("min_count", options.min_count, {.min = 1, .max = kMaxCount}, "word: drop rarer words");
  v.Visit("max_size", options.max_size, {.min = 0, .max = kMaxCount}, "word: keep the most frequent words, 0 = all");
  v.Visit("joiner", options.joiner, "word: a word that ends in this is printed joined to the next one, as \"@@\"");
  v.Visit("vocab_size", options.vocab_size, {.min = 1, .max = kMaxCount},
          "bpe, unigram: size of the vocabulary to learn, without special tokens");
  v.Visit("byte_fallback", options.byte_fallback, "bpe, unigram: 256 bytes stand for characters without a piece");
  v.Visit("character_coverage", options.character_coverage, {.min = kMinCharacterCoverage, .max = 1},
          "bpe, unigram: part of the characters, by frequency, that get a piece");
  v.Choice("normalization", options.normalization, {"none", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"},
           "bpe, unigram: what every text goes through first; only none gives it back exactly");
  v.Visit("file", options.file, "tokenizer file of this kind, by `weft tokenizer train`, to use in place of building one");
}

void SamplingFields(FieldVisitor& v, SubwordSampling& sampling) {
  v.Visit("bpe_dropout", sampling.bpe_dropout, {.min = 0, .max = 1, .min_open = true},
          "bpe: probability that a merge is left out at a step");
  v.Visit("alpha", sampling.alpha, {.min = 0, .max = 1e6, .min_open = true},
          "unigram: a segmentation is drawn with its probability to the power of alpha");
}

void TrainConfig::Fields(FieldVisitor& v) {
  v.Visit("steps", steps, {.min = 1, .max = kMaxSteps}, "updates to train; or epochs, or minutes");
  v.Visit("epochs", epochs, {.min = 1, .max = 100000}, "passes over the data to train; or steps");
  v.Visit("minutes", minutes, {.min = 0, .min_open = true}, "stop after so much time, also before steps or epochs are done");
  v.Visit("batch_size", batch_size, {.min = 1, .max = kMaxCount}, "sequences of a batch; or batch_tokens");
  v.Visit("batch_tokens", batch_tokens, {.min = 1, .max = kMaxCount}, "target tokens of a batch; or batch_size");
  v.Visit("accumulate", accumulate, {.min = 1, .max = 1 << 20}, "batches of one update");
  v.Visit("clip_norm", clip_norm, {.min = 0}, "largest global norm of the gradient, 0 = no clipping");
  v.Visit("label_smoothing", label_smoothing, {.min = 0, .max = 1, .max_open = true}, "weight of the uniform distribution");
  v.Visit("shards", shards, {.min = 0, .max = 4096}, "parts of a batch whose gradients are summed, 0 = automatic");
  v.Visit("shuffle", shuffle, "a new order of the examples in each epoch");
  v.Visit("sort_pool", sort_pool, {.min = 0, .max = kMaxCount},
          "batches of about equal lengths: so many examples at a time are sorted, then their batches shuffled; 0 = none");
  v.Visit("gradient_noise", gradient_noise, {.min = 0, .max = 1e6},
          "eta of noise of variance eta / (1 + t)^0.55 on the gradient before clipping, 0 = none");
  v.Visit("log_every", log_every, {.min = 1, .max = kMaxSteps}, "steps between lines of the log");
  v.Visit("ema_decay", ema_decay, {.min = 0, .max = 1, .max_open = true},
          "decay of the moving average of the weights, which is what is validated and decoded with; 0 = none");
  v.Choice("on_nonfinite", on_nonfinite, {"stop", "skip"}, "what a NaN or infinite loss or gradient does to the run");
  v.Visit("max_skips", max_skips, {.min = 1, .max = kMaxCount}, "skip: updates left out in a row before the run stops");
  v.Visit("init_from", init_from, "run or checkpoint to take initial weights and tokenizers from");
  v.Visit("init_partial", init_partial, "init_from: allow parameters that are missing there or have another shape");
  v.Visit("tensorboard", tensorboard, "write event files for TensorBoard into the run folder");
  v.Visit("histograms", histograms, {.min = 0, .max = kMaxSteps},
          "steps between histograms of weights for TensorBoard, 0 = none");
}

void OptimizerConfig::Fields(FieldVisitor& v) {
  v.Choice("kind", kind, {"adamw", "adam", "sgd", "lion", "adafactor", "muon"}, "the update rule");
  v.Visit("lr", lr, {.min = 0, .min_open = true}, "largest learning rate");
  v.Visit("betas", betas, {.min = 0, .max = 1, .max_open = true},
          "adam, adamw, muon: decay of the two moments; lion: of the step's blend and of the moment, [0.9, 0.99] unless given");
  v.Visit("eps", eps, {.min = 0, .min_open = true}, "adam, adamw, muon: added to the root of the second moment");
  v.Visit("weight_decay", weight_decay, {.min = 0},
          "added to the gradient for adam and sgd, decoupled for the others; 0 unless given for all but adamw and muon");
  v.Choice("decay", decay, {"matrices", "all"}, "what decays: parameters of rank 2 and above, or all");
  v.Visit("momentum", momentum, {.min = 0, .max = 1, .max_open = true},
          "sgd: decay of the velocity; muon: of the mean of gradients, 0.95 unless given");
  v.Visit("nesterov", nesterov, "sgd: look ahead along the velocity");
}

void OptimizerGroup::Fields(FieldVisitor& v) {
  v.Visit("match", match, "names of parameters; * stands for any run of characters, ? for one");
  v.Visit("lr_scale", lr_scale, {.min = 0, .min_open = true}, "multiplies the learning rate of these parameters");
  v.Visit("weight_decay", weight_decay, {.min = 0}, "of all these parameters, instead of optimizer.weight_decay");
  v.Visit("frozen", frozen, "leave these parameters as they are");
}

void ScheduleConfig::Fields(FieldVisitor& v) {
  v.Choice("kind", kind, {"constant", "linear", "cosine", "inverse_sqrt", "wsd"},
           "course of the learning rate after the warm-up; wsd: stable, then a decay");
  v.Visit("warmup_steps", warmup_steps, {.min = 0, .max = kMaxSteps}, "updates in which the rate rises from 0");
  v.Visit("steps", steps, {.min = 1, .max = kMaxSteps}, "update at which min_lr is reached; default train.steps");
  v.Visit("min_lr", min_lr, {.min = 0}, "linear, cosine, wsd: the last learning rate");
  v.Visit("decay_steps", decay_steps, {.min = 1, .max = kMaxSteps}, "wsd: updates of the decay; default a fifth of steps");
  v.Choice("shape", shape, {"linear", "cosine", "sqrt"}, "wsd: course of the decay; sqrt: 1 - sqrt of the part that is done");
  v.Visit("cycle_steps", cycle_steps, {.min = 1, .max = kMaxSteps},
          "cosine: updates of the first cycle, each of which starts at lr again, without end; not with steps");
  v.Visit("cycle_multiplier", cycle_multiplier, {.min = 1, .max = 1000},
          "cosine: each cycle is so many times as long as the last");
}

void ValidConfig::Fields(FieldVisitor& v) {
  v.Visit("every", every, {.min = 0, .max = kMaxSteps},
          "steps between validations, 0 = after each epoch with train.epochs, and at the end");
  v.Visit("batch_size", batch_size, {.min = 1, .max = kMaxCount}, "sequences of a validation batch; changes no result");
  v.Visit("metrics", metrics,
          "loss, accuracy; text: bits_per_byte; pairs, by decoding: exact_match, per, bleu, chrf, chrf++, wer, cer");
  v.Choice("best", best, MetricNames(), "the metric that decides best and patience");
  v.Visit("patience", patience, {.min = 0, .max = kMaxCount}, "stop after so many validations without a new best, 0 = never");
  v.Visit("beam", beam, {.min = 1, .max = kMaxBeam}, "width of the beam that finds the answers for metrics, 1 = greedy");
  v.Visit("length_penalty", length_penalty, {.min = 0, .max = kMaxLengthPenalty},
          "with a beam: answers are ranked by log-probability / length^length_penalty");
  v.Visit("lowercase", lowercase, "bleu, chrf, chrf++, wer, cer: ignore case");
}

void ValidConfig::BleuFields(FieldVisitor& v) {
  v.Choice("tokenize", bleu_tokenize, {"13a", "intl", "char", "none"}, "what a word is to BLEU");
  v.Choice("smooth", bleu_smooth, {"exp", "floor", "add-k", "none"}, "n-gram orders without a match");
}

void CheckpointConfig::Fields(FieldVisitor& v) {
  v.Visit("every", every, {.min = 0, .max = kMaxSteps}, "steps between checkpoints, 0 = only at the end");
  v.Visit("minutes", minutes, {.min = 0, .min_open = true}, "the same by time");
  v.Visit("keep_last", keep_last, {.min = 1, .max = kMaxCount}, "newest checkpoints to keep");
  v.Visit("keep_best", keep_best, {.min = 0, .max = kMaxCount}, "best checkpoints to keep");
}

}  // namespace weft
