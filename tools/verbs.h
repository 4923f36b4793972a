// The verbs of the program: each is one function in the file of its name, with its flags as a plain struct. program.cc knows
// how flags are spelled. Each writes its result to stdout and returns a Status (see ExitCode).
#ifndef WEFT_TOOLS_VERBS_H_
#define WEFT_TOOLS_VERBS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/tokenizer.h"

namespace weft {

struct TrainFlags {
  std::string config;
  std::vector<std::string> set;
  bool resume = false, overwrite = false, quiet = false, detect_anomaly = false;
};
// `signal` receives the number of the signal that ended the run, or 0.
absl::Status RunTrain(const TrainFlags& flags, int* signal);

struct EvalFlags {
  std::string run;
  std::vector<std::string> data;     // empty: the run's own validation data
  std::vector<std::string> metrics;  // empty: those of the kind of data, and those on text in the run's [valid]
  std::string output;                // file for the answers, a line each; empty: none
  std::optional<int64_t> beam;       // not given: as in the run's [valid], and so the next four
  std::optional<double> length_penalty;
  std::optional<std::string> tokenize, smooth;
  bool lowercase = false;
  bool json = false;
};
absl::Status RunEval(const EvalFlags& flags);
// What `metrics` may name.
std::vector<std::string> EvaluationMetrics();

struct GenerateFlags {
  std::string run;
  std::vector<std::string> prompts;       // empty: one a line of stdin
  std::optional<int64_t> max_new_tokens;  // not given: 256; the others as in DecodeOptions and BeamOptions
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p, min_p, repetition_penalty;
  std::optional<int64_t> min_length;
  std::optional<int64_t> beam;  // 1, as if not given: no search
  std::optional<double> length_penalty;
  std::optional<int64_t> n_best;
  int64_t seed = 1;
  bool json = false;
};
absl::Status RunGenerate(const GenerateFlags& flags);

struct GradcheckFlags {
  std::vector<std::string> names;  // empty: all
  std::string config;              // checks this config's model instead
  std::vector<std::string> set;
  bool json = false;
};
absl::Status RunGradcheck(const GradcheckFlags& flags);

struct LayersFlags {
  bool json = false;
};
absl::Status RunLayers(const LayersFlags& flags);

struct ConfigFlags {
  std::string config;  // may be empty with `schema`
  std::vector<std::string> set;
  bool full = false, minimal = false, schema = false;  // at most one; none: the resolved config
};
absl::Status RunPrintConfig(const ConfigFlags& flags);

struct ScoreFlags {
  std::vector<std::string> metrics = {"bleu"};
  std::vector<std::string> hypotheses;  // one; two with `paired`
  std::vector<std::string> references;
  std::optional<std::string> tokenize, smooth;  // not given: 13a, exp
  bool lowercase = false, paired = false, json = false;
};
absl::Status RunScore(const ScoreFlags& flags);

struct InspectFlags {
  std::string checkpoint;
  bool json = false;
};
absl::Status RunInspect(const InspectFlags& flags);

struct AverageFlags {
  std::vector<std::string> inputs;  // run folders and checkpoint files
  std::string output;
  int64_t last = 3;  // of each run folder: what checkpoint.keep_last keeps by default
  bool overwrite = false;
};
absl::Status RunAverage(const AverageFlags& flags);

struct StatusFlags {
  std::vector<std::string> runs;
  bool json = false;
};
absl::Status RunStatus(const StatusFlags& flags);

struct AttentionFlags {
  std::string run;
  std::string input;
};
absl::Status RunAttention(const AttentionFlags& flags);

struct BenchFlags {
  std::vector<std::string> suites;  // empty: all that train a model; "all": everything
  std::string only;                 // of suites with many cases: those whose name contains this; empty: all
  int64_t steps = 0;                // or repetitions of a case; 0: the suite's own number
  int threads = 1;                  // for the report; the program has set them
  bool json = false;
  bool profile = false;  // after a training suite, its costs by op
  std::string config;    // times the training of this config in place of suites
  std::vector<std::string> set;
};
absl::Status RunBench(const BenchFlags& flags);
// The names of the suites, "all" included, and what --help says of them.
std::vector<std::string> BenchSuites();
std::string BenchHelp();

struct TokenizerTrainFlags {
  TokenizerOptions options;
  std::vector<std::string> texts;
  std::string output;
  bool overwrite = false;
};
absl::Status RunTokenizerTrain(const TokenizerTrainFlags& flags);

struct TokenizerFlags {
  std::string input;  // a tokenizer file, a run or a checkpoint
  std::string side;   // of a run: source or target; empty: the only one
  bool pieces = false, all = false;
};
absl::Status RunTokenizerEncode(const TokenizerFlags& flags);
absl::Status RunTokenizerDecode(const TokenizerFlags& flags);
absl::Status RunTokenizerInspect(const TokenizerFlags& flags);

}  // namespace weft

#endif  // WEFT_TOOLS_VERBS_H_
