#include "tools/program.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <new>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/fields.h"
#include "autograd/base/parallel.h"
#include "autograd/base/status.h"
#include "autograd/kernels/simd.h"
#include "data/scores/metric.h"
#include "data/utf8.h"
#include "tools/verbs.h"
#include "train/beam.h"

namespace weft {
namespace {

constexpr char kAbout[] =
    "Weft trains small Transformers on CPUs: from a config file, with gradient checks, and with layers of your own.\n"
    "Exit codes: 0 ok, 1 run-time failure, 2 usage or config, 3 diverged, 130 and 143 after SIGINT and SIGTERM.";

// `--set a=1 --set b=2`: one value each, so that a position after it is not swallowed.
void AddSet(CLI::App* verb, std::vector<std::string>* set) {
  verb->add_option("--set", *set, "Override a key of the config: KEY=VALUE, may be repeated; the last one of a key wins")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

// CLI11 reads a number too large as the largest one, and lets NaN through its ranges: these read the whole text and refuse
// both.
CLI::Validator SeedValidator() {
  return CLI::Validator(
      [](std::string& text) {
        int64_t seed;
        if (absl::SimpleAtoi(text, &seed) && seed >= 0) return std::string();
        return absl::StrCat("found ", text, ", allowed an integer in [0, 9223372036854775807]");
      },
      "INT >= 0");
}

CLI::Validator NumberIn(double low, double high) {
  const std::string range = absl::StrCat("[", low, ", ", high, "]");
  return CLI::Validator(
      [=](std::string& text) {
        double value;
        if (absl::SimpleAtod(text, &value) && low <= value && value <= high) return std::string();
        return absl::StrCat("found ", text, ", allowed a number in ", range);
      },
      absl::StrCat("in ", range));
}

// A message on stderr. A path, or a name in somebody's file, may have what a terminal obeys.
std::string Shown(absl::string_view message) { return EscapeControls(message, "\t\n"); }

// What the command line got wrong. CLI11 complains first of what is missing; a word that it could not place explains more.
std::string UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> strangers = app.remaining(/*recurse=*/true);
  if (strangers.empty()) return error.what();
  if (!app.get_subcommands().empty() || absl::StartsWith(strangers[0], "-")) {
    return absl::StrCat("unexpected argument ", strangers[0]);
  }
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) verbs.push_back(verb->get_name());
  const std::string nearest = Nearest(strangers[0], verbs);
  return absl::StrCat("unknown verb ", strangers[0], nearest.empty() ? "" : absl::StrCat(", did you mean ", nearest, "?"),
                      "; allowed: ", absl::StrJoin(verbs, " "));
}

constexpr char kRunHelp[] = "A run folder (its best checkpoint, else its last) or a checkpoint file";

}  // namespace

int ProgramMain(int argc, char** argv) {
  CLI::App app(kAbout, "weft");
  app.require_subcommand(1);
  app.set_version_flag("--version", "weft " WEFT_VERSION);
  int threads = 0, signal = 0;
  std::function<absl::Status()> run;
  const auto verb = [&](const char* name, const char* about, CLI::App* parent = nullptr) {
    CLI::App* sub = (parent != nullptr ? parent : &app)->add_subcommand(name, about);
    sub->add_option("--threads", threads,
                    "Threads to use (default: all processors this process may use); results do not depend on it")
        ->check(CLI::Range(1, 1024));
    return sub;
  };

  TrainFlags train;
  CLI::App* sub = verb("train", "Train a model from a config file");
  sub->add_option("CONFIG", train.config, "The config, a TOML file")->required();
  AddSet(sub, &train.set);
  CLI::Option* resume = sub->add_flag("--resume", train.resume, "Go on from the last checkpoint in the run folder");
  sub->add_flag("--overwrite", train.overwrite, "Start anew in a run folder that has a run; its old files are removed")
      ->excludes(resume);
  sub->add_flag("--quiet", train.quiet, "No progress on stderr");
  sub->add_flag("--detect-anomaly", train.detect_anomaly,
                "Look at what every op computes; stop at the first NaN or infinity and name its op and layer (slower)");
  sub->callback([&] { run = [&] { return RunTrain(train, &signal); }; });

  EvalFlags eval;
  sub = verb("eval", "Score a model on its validation data, or on a file");
  sub->add_option("RUN", eval.run, kRunHelp)->required();
  sub->add_option(
         "--data", eval.data,
         "A file of the same kind as the training data; of pairs also FILE FILE...: sources, targets, further references")
      ->expected(1, -1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option(
         "--metrics", eval.metrics,
         "Beside loss, perplexity and accuracy: bleu,chrf,chrf++,wer,cer,exact_match,per of pairs, bits_per_byte of text")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->check(CLI::IsMember(EvaluationMetrics()));
  sub->add_option("--output", eval.output, "Write the answers to this file, line i for line i of the sources");
  sub->add_option("--tokenize", eval.tokenize, "Tokens of BLEU: 13a, intl, char, none (default: the run's valid.bleu)");
  sub->add_option("--smooth", eval.smooth, "Orders of BLEU without a match: exp, floor, add-k, none (default: the run's)");
  sub->add_flag("--lowercase", eval.lowercase, "Ignore case in bleu, chrf, chrf++, wer and cer");
  sub->add_option("--beam", eval.beam, "Answer with a beam of this width; 1: greedy (default: the run's valid.beam)")
      ->check(CLI::Range(int64_t{1}, kMaxBeam));
  sub->add_option("--length-penalty", eval.length_penalty,
                  "With a beam: answers are ranked by log-probability / length^A (default: the run's valid.length_penalty)")
      ->check(NumberIn(0, kMaxLengthPenalty));
  sub->add_flag("--json", eval.json, "One JSON object");
  sub->callback([&] { run = [&] { return RunEval(eval); }; });

  GenerateFlags generate;
  sub = verb("generate", "Answer sources, continue texts, or name classes: a line in, a line out");
  sub->add_option("RUN", generate.run, kRunHelp)->required();
  sub->add_option("--prompt", generate.prompts, "The input, may be repeated (default: each line of stdin)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  sub->add_option("--max-new-tokens", generate.max_new_tokens, "Longest answer or continuation, in tokens (default: 256)")
      ->check(CLI::Range(1, 1 << 20));
  sub->add_option("--temperature", generate.temperature, "0: the most probable token; else sample, logits divided by this")
      ->check(NumberIn(0, 1000));
  CLI::Option* beam = sub->add_option("--beam", generate.beam, "Search the best answer with a beam of this width; 1: greedy");
  beam->check(CLI::Range(int64_t{1}, kMaxBeam));
  sub->add_option("--length-penalty", generate.length_penalty,
                  "With a beam: answers are ranked by log-probability / length^A, the length with <eos>")
      ->check(NumberIn(0, kMaxLengthPenalty))
      ->needs(beam);
  sub->add_option("--min-length", generate.min_length, "Shortest answer, in tokens")->check(CLI::Range(0, 1 << 20));
  CLI::Option* n_best = sub->add_option("--n-best", generate.n_best, "With --json: the K best answers that the beam found");
  n_best->check(CLI::Range(int64_t{1}, kMaxBeam))->needs(beam);
  sub->add_option("--top-k", generate.top_k, "Sample among the K most probable tokens; 0: all")->check(CLI::Range(0, 1 << 30));
  sub->add_option("--top-p", generate.top_p, "Sample among the most probable tokens that reach this probability")
      ->check(NumberIn(1e-9, 1));
  sub->add_option("--min-p", generate.min_p, "Sample among tokens of at least this part of the largest probability")
      ->check(NumberIn(0, 1));
  sub->add_option("--repetition-penalty", generate.repetition_penalty,
                  "Divide the logits of tokens that were there (multiply negative ones); 1: none")
      ->check(NumberIn(1e-3, 1e3));
  for (const char* name : {"--top-k", "--top-p", "--min-p"}) sub->get_option(name)->needs(sub->get_option("--temperature"));
  for (const char* name : {"--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty"}) {
    beam->excludes(sub->get_option(name));
  }
  sub->add_option("--seed", generate.seed, "Of the sampling")->check(SeedValidator());
  n_best->needs(sub->add_flag("--json", generate.json, "One JSON object a line"));
  sub->callback([&] { run = [&] { return RunGenerate(generate); }; });

  ScoreFlags score;
  sub = verb("score", "Score generated text against references: BLEU, chrF, error rates");
  const auto repeated = [&sub](const char* flag, std::vector<std::string>* values, const char* about) {
    return sub->add_option(flag, *values, about)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  repeated("--metric", &score.metrics, "A score, may be repeated (default: bleu)")->check(CLI::IsMember(TextMetricNames()));
  repeated("--hypothesis", &score.hypotheses, "Generated text, a line each; two files with --paired")->required();
  repeated("--reference", &score.references, "What it should be, a line each; of several files the nearest or best counts")
      ->required();
  sub->add_option("--tokenize", score.tokenize, "Tokens of BLEU: 13a, intl, char, none");
  sub->add_option("--smooth", score.smooth, "Orders of BLEU without a match: exp, floor, add-k, none");
  sub->add_flag("--lowercase", score.lowercase, "Ignore case");
  sub->add_flag("--paired", score.paired, "Compare two outputs by paired bootstrap resampling");
  sub->add_flag("--json", score.json, "One JSON object a metric");
  sub->callback([&] { run = [&] { return RunScore(score); }; });

  GradcheckFlags gradcheck;
  sub = verb("gradcheck", "Check gradients by central differences in f64: every op, every layer, or a config's model");
  sub->add_option("NAME", gradcheck.names, "Ops and layers to check (default: all)");
  CLI::Option* checked = sub->add_option("--config", gradcheck.config, "Check the model of this config, shrunk; opens no data");
  AddSet(sub, &gradcheck.set);
  sub->get_option("--set")->needs(checked);
  sub->add_flag("--json", gradcheck.json, "One JSON object a line");
  sub->callback([&] { run = [&] { return RunGradcheck(gradcheck); }; });

  LayersFlags layers;
  sub = verb("layers", "List the registered layers and their options");
  sub->add_flag("--json", layers.json, "One JSON object a line");
  sub->callback([&] { run = [&] { return RunLayers(layers); }; });

  ConfigFlags config;
  sub = verb("config", "Print a config with all its keys as resolved");
  sub->add_option("CONFIG", config.config, "The config, a TOML file; not needed with --schema");
  AddSet(sub, &config.set);
  CLI::Option* full = sub->add_flag("--full", config.full, "Every key, with a comment of what it does and may be");
  CLI::Option* minimal =
      sub->add_flag("--minimal", config.minimal, "Only the keys without which it would load to another config");
  sub->add_flag("--schema", config.schema, "A JSON Schema of all keys, for editors")->excludes(full)->excludes(minimal);
  full->excludes(minimal);
  sub->callback([&] { run = [&] { return RunPrintConfig(config); }; });

  StatusFlags status_flags;
  sub = verb("status", "How runs are doing: state, step, loss, speed, time left; also while they live");
  sub->add_option("RUN", status_flags.runs, "Run folders")->required();
  sub->add_flag("--json", status_flags.json, "One JSON object a run");
  sub->callback([&] { run = [&] { return RunStatus(status_flags); }; });

  InspectFlags inspect;
  sub = verb("inspect", "Show what is in a checkpoint: step, config, tensors");
  sub->add_option("CHECKPOINT", inspect.checkpoint, kRunHelp)->required();
  sub->add_flag("--json", inspect.json, "One JSON object");
  sub->callback([&] { run = [&] { return RunInspect(inspect); }; });

  AverageFlags average;
  sub = verb("average", "Write a checkpoint with the mean of the weights of several");
  sub->add_option("RUN", average.inputs, "Run folders (the newest --last checkpoints of each) and checkpoint files")
      ->required();
  sub->add_option("-o,--output", average.output, "The checkpoint to write")->required();
  sub->add_option("--last", average.last, "Checkpoints to take of a run folder (default: 3)")->check(CLI::Range(1, 1 << 20));
  sub->add_flag("--overwrite", average.overwrite, "Replace the output if it exists");
  sub->callback([&] { run = [&] { return RunAverage(average); }; });

  CLI::App* tokenizer = app.add_subcommand("tokenizer", "Train a tokenizer, and use that of a file or a run");
  tokenizer->require_subcommand(1);
  TokenizerTrainFlags learn;
  TokenizerOptions& how = learn.options;
  sub = verb("train", "Build a tokenizer from texts and write it to a file, for data.tokenizer.file", tokenizer);
  sub->add_option("TEXT", learn.texts, "Text files")->required();
  sub->add_option("-o,--output", learn.output, "The tokenizer file to write")->required();
  sub->add_option("--kind", how.kind, "What a token is")
      ->required()
      ->check(CLI::IsMember({"char", "byte", "word", "bpe", "unigram"}));
  sub->add_option("--vocab-size", how.vocab_size, "bpe, unigram: symbols to have")->check(CLI::Range(1, 1 << 30));
  sub->add_flag("--byte-fallback,!--no-byte-fallback", how.byte_fallback,
                "bpe, unigram: 256 bytes stand for characters without a piece (the default)");
  sub->add_option("--character-coverage", how.character_coverage,
                  "bpe, unigram: part of the characters, by frequency, that get a piece")
      ->check(NumberIn(kMinCharacterCoverage, 1));
  sub->add_option("--normalization", how.normalization, "bpe, unigram: what every text goes through first")
      ->check(CLI::IsMember({"none", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"}));
  sub->add_flag("--unknown", how.unknown, "word, and others without bytes: read what is outside the vocabulary as <unk>");
  sub->add_option("--min-count", how.min_count, "word: drop rarer words")->check(CLI::Range(1, 1 << 30));
  sub->add_option("--max-size", how.max_size, "word: keep the most frequent words, 0: all")->check(CLI::Range(0, 1 << 30));
  sub->add_option("--joiner", how.joiner, "word: a word that ends in this is printed joined to the next one");
  sub->add_flag("--overwrite", learn.overwrite, "Replace the output if it exists");
  sub->callback([&] { run = [&] { return RunTokenizerTrain(learn); }; });

  TokenizerFlags tokens;
  const auto token_verb = [&](const char* name, const char* about, absl::Status (*function)(const TokenizerFlags&)) {
    sub = verb(name, about, tokenizer);
    sub->add_option("FILE", tokens.input, "A tokenizer file, a run folder or a checkpoint file")->required();
    sub->add_option("--side", tokens.side, "Of a run of pairs: source or target")->check(CLI::IsMember({"source", "target"}));
    sub->callback([&run, &tokens, function] { run = [&tokens, function] { return function(tokens); }; });
  };
  token_verb("encode", "Text to token ids, a line of stdin each", RunTokenizerEncode);
  sub->add_flag("--pieces", tokens.pieces, "The tokens' texts: a space in one as ▁, bytes as \\xNN");
  token_verb("decode", "Token ids to text, a line of stdin each", RunTokenizerDecode);
  token_verb("inspect", "Kind, size, hash, special tokens and first pieces", RunTokenizerInspect);
  sub->add_flag("--all", tokens.all, "A table of every id: ID TAB TOKEN, and TAB SCORE");

  AttentionFlags attention;
  sub = verb("attention", "Print the attention weights of an input as JSON, per layer and head");
  sub->add_option("RUN", attention.run, kRunHelp)->required();
  sub->add_option("--input", attention.input, "The input; for pairs SOURCE, or SOURCE<TAB>TARGET")->required();
  bool json = true;
  sub->add_flag("--json", json, "JSON (the default)");
  sub->callback([&] { run = [&] { return RunAttention(attention); }; });

  BenchFlags bench;
  sub = verb("bench", "Time training steps of fixed models or of a config, matrix products, attention and decoding");
  sub->add_option("--suite", bench.suites, "A suite to run, may be repeated (default: those that train; all: everything)")
      ->check(CLI::IsMember(BenchSuites()))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  sub->add_option("--case", bench.only,
                  "Of gemm, attention and generate: only cases whose name contains this (gpt2, NT, T512)");
  sub->add_option("--steps", bench.steps, "Timed steps, or repetitions of a case (default: the suite's own number)")
      ->check(CLI::Range(1, 100000));
  sub->add_flag("--profile", bench.profile, "After the timed steps, of training: time, GF/s and memory of each op");
  CLI::Option* bench_config = sub->add_option("--config", bench.config, "Time the training of this config, on its data");
  bench_config->excludes(sub->get_option("--suite"))->excludes(sub->get_option("--case"));
  AddSet(sub, &bench.set);
  sub->get_option("--set")->needs(bench_config);
  sub->add_flag("--json", bench.json, "One JSON object a result");
  sub->footer(BenchHelp());
  sub->callback([&] {
    run = [&] {
      bench.threads = threads;
      return RunBench(bench);
    };
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "weft: %s\nRun with --help for more information.\n", Shown(UsageError(app, error)).c_str());
    return 2;
  }

  // A file beyond the limit of sizes is then an error of the write, which names it, and not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  if (threads == 0) threads = AvailableThreads();
  absl::Status status = kernels::CheckSimdEnvironment();
  if (status.ok()) {
    Workers workers(threads);
    try {
      workers.Run([&] { status = run(); });
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError("out of memory: the machine has too little for these sizes");
    }
  }
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && status.ok())
    status = absl::UnavailableError("stdout cannot be written");
  if (!status.ok()) std::fprintf(stderr, "%s\n", Shown(status.message()).c_str());
  if (signal != 0 && status.ok()) return 128 + signal;
  return ExitCode(status);
}

}  // namespace weft
