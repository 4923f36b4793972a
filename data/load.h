// From options to data ready to train on: reads files or makes a rule-made task, builds the tokenizers from the training data,
// encodes both splits, and says in a report what was read. Everything is checked before it returns: unreadable files, invalid
// UTF-8, malformed lines, unknown symbols and too little data are Status errors that name the file and the line.
// Codes: InvalidArgument for an option that no data could satisfy; FailedPrecondition, NotFound or DataLoss for the data.
// Which side exists: text has only a target side (target_tokenizer), labels only a source side, pairs both.
#ifndef WEFT_DATA_LOAD_H_
#define WEFT_DATA_LOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/columns.h"
#include "data/examples.h"
#include "data/text_source.h"
#include "data/tokenizer.h"

namespace weft {

// What becomes of files that are too large to be held.
struct TextStorage {
  // Larger files, in bytes (those of a split together), are read in pieces, and their ids go to the token cache; smaller ones
  // are held in memory. Pairs and labels: of the training split without subword sampling; else ids, and texts that are needed,
  // are held.
  int64_t in_memory = int64_t{32} << 20;
  std::string cache = "";             // folder of the token cache; "": see CacheTokens in data/token_cache.h
  int64_t piece_bytes = kPieceBytes;  // of the pieces that a text is read in, about; of a test's, few
};

struct DataOptions {
  std::string kind = "pairs";  // pairs | text | labels | task
  std::string task = "";       // kind = task: a name from Tasks() (data/tasks/task.h)
  std::string train = "";      // path of the training file
  std::string valid = "";      // path of the validation file, "" for none
  // Pairs in several files: those of the targets, line for line; of `valid`, more than one are further references.
  std::vector<std::string> train_targets = {};
  std::vector<std::string> valid_targets = {};
  TableColumns columns = {};      // pairs in one file, labels
  int64_t max_source_length = 0;  // pairs: longer ones are not trained on, in tokens without <eos>; 0: no limit
  int64_t max_target_length = 0;
  double valid_fraction = 0.0;  // text: the last part of the training file, in tokens, for validation; in [0, 1)
  int64_t window = 0;           // text: targets of one training window, in tokens, >= 1
  // kind "" in a task: the task's own suggestion. `specials` is ignored: LoadData sets it (targets of pairs have them).
  TokenizerOptions source_tokenizer = {};
  TokenizerOptions target_tokenizer = {};
  bool shared_tokenizer = false;  // pairs: one vocabulary for both sides, by target_tokenizer, built from both
  int64_t train_size = 0;         // task: examples, 0 = the task's default
  int64_t valid_size = 0;         // task: the same for the held-out split
  int64_t max_length = 0;         // task: longest sequence, 0 = the task's default
  uint64_t seed = 1;              // task: what the examples are generated from
  // Of an earlier training, to be used in place of new ones (null: build them from the training data); classes: labels.
  const Tokenizer* known_source = nullptr;
  const Tokenizer* known_target = nullptr;
  std::vector<std::string> known_classes = {};
  TextStorage storage = {};
};

// Which lines of the file the examples are. Text has none.
struct ExampleLines {
  int64_t count = 0;                     // lines of the file
  std::vector<int64_t> of_example = {};  // the line of each example, from 1
};

// Whether a tokenizer is learned at some cost (bpe, unigram), or read from a file that may have changed: one that is known
// already is then better than a new one.
bool HasLearnedTokenizer(const DataOptions& options);

struct Dataset {
  DataKind kind = DataKind::kText;
  ExampleSet train;
  ExampleSet valid;                             // empty without validation data, which the report says
  ExampleLines valid_lines;                     // pairs
  std::unique_ptr<Tokenizer> source_tokenizer;  // null for text
  std::unique_ptr<Tokenizer> target_tokenizer;  // null for labels
  std::vector<std::string> class_names;         // labels: name of each class id
  uint64_t content_hash = 0;                    // of the text of both splits after NormalizeNewlines; not of paths
  std::string report;                           // lines for the log: what was read, kept and skipped; tokens; vocabularies
};

// Loads the training data, and the validation data if there is any.
absl::StatusOr<std::unique_ptr<Dataset>> LoadData(const DataOptions& options);

// What a checkpoint knows of its data, by views: enough to read another file for evaluation.
struct EvaluationOptions {
  DataKind kind = DataKind::kText;
  const Tokenizer* source_tokenizer = nullptr;  // null for text
  const Tokenizer* target_tokenizer = nullptr;  // null for labels
  std::vector<std::string> class_names = {};    // labels
  int64_t window = 0;                           // text
  TextStorage storage = {};
  TableColumns columns = {};  // pairs in one file, labels
};

struct EvaluationData {
  ExampleSet examples;  // with references; windows of text end to end
  ExampleLines lines;   // pairs
  uint64_t content_hash = 0;
  std::string report;
};

// Reads `paths` with tokenizers that exist already: one file, or several of pairs (sources, then targets). A symbol they lack
// is refused with its line and position. InvalidArgument for several files of another kind.
absl::StatusOr<EvaluationData> LoadEvaluationData(absl::Span<const std::string> paths, const EvaluationOptions& options);
absl::StatusOr<EvaluationData> LoadEvaluationData(const std::string& path, const EvaluationOptions& options);

}  // namespace weft

#endif  // WEFT_DATA_LOAD_H_
