// A data file of any bytes, as pairs, labels or text, whole and as validation data too, with tokenizers by the mode byte. In
// one of its modes a second byte chooses a layout: pairs in two files, named columns; that data is read in pieces as well, by
// way of a token cache, and must be the same.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/load.h"
#include "tests/fuzz/fuzz.h"

namespace {

// By the byte in front of `rest`: bit 0 two files (parted by the first 0x1E), bit 1 named columns, bit 2 labels, bits 3-4 and
// 5-6 the columns of source and target, bit 7 a further source column.
void ChooseLayout(absl::string_view rest, const weft::FuzzFile& file, const weft::FuzzFile& targets,
                  weft::DataOptions* options) {
  const unsigned layout = rest.empty() ? 0 : static_cast<unsigned char>(rest[0]);
  if (!rest.empty()) rest.remove_prefix(1);
  file.Put(rest);
  if (layout & 4) options->kind = "labels";
  if (layout & 2) {
    options->columns = {.source = {1 + ((layout >> 3) & 3)}, .target = 1 + ((layout >> 5) & 3), .named = true};
    if (layout & 128) options->columns.source.push_back(2);
  } else if ((layout & 1) && options->kind == "pairs") {
    const size_t border = std::min(rest.find('\x1E'), rest.size());
    file.Put(rest.substr(0, border));
    targets.Put(border == rest.size() ? "" : rest.substr(border + 1));
    options->train_targets = {targets.path()};
    if (!options->valid.empty()) options->valid_targets = {targets.path()};
  }
}

// Loads as files that exceed memory: what LoadData said of `held` must hold.
void ExpectTheSameInPieces(weft::DataOptions options, const absl::StatusOr<std::unique_ptr<weft::Dataset>>& held) {
  const std::string folder = options.train + ".cache";
  options.storage = {.in_memory = 0, .cache = folder};
  const absl::StatusOr<std::unique_ptr<weft::Dataset>> pieces = weft::LoadData(options);
  std::filesystem::remove_all(folder);
  // Not the same error: of mistakes in two files, either may be met first.
  FUZZ_EXPECT(pieces.ok() == held.ok());
  if (!held.ok()) return;
  FUZZ_EXPECT((*pieces)->content_hash == (*held)->content_hash && (*pieces)->train.size() == (*held)->train.size());
  std::vector<int32_t> buffer;
  for (int64_t i = 0; i < (*held)->train.size(); ++i) {
    const absl::StatusOr<weft::ExampleIds> ids = (*pieces)->train.ReadIds(i, &buffer);
    FUZZ_EXPECT(ids.ok() && ids->source == (*held)->train.Source(i));
    FUZZ_EXPECT(options.kind == "labels" || ids->target == (*held)->train.Target(i));
    FUZZ_EXPECT(options.kind == "pairs" || (*pieces)->train.Class(i) == (*held)->train.Class(i));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::FuzzFile file, targets;
  const weft::FuzzInput input(data, size);
  constexpr const char* kKinds[] = {"pairs", "pairs", "labels", "text"};
  constexpr const char* kTokenizers[] = {"word", "byte", "word", "char"};
  weft::DataOptions options;
  options.kind = kKinds[input.mode & 3];
  options.train = file.path();
  if (input.mode & 4) options.valid = file.path();
  options.source_tokenizer.kind = kTokenizers[(input.mode >> 3) & 3];
  options.target_tokenizer.kind = kTokenizers[(input.mode >> 5) & 3];
  const bool layout = (input.mode & 3) == 1;
  layout ? ChooseLayout(input.rest, file, targets, &options) : file.Put(input.rest);
  options.shared_tokenizer = options.kind == "pairs" && (input.mode & 128) != 0;
  if (options.kind == "text") options.window = 3;
  const absl::StatusOr<std::unique_ptr<weft::Dataset>> loaded = weft::LoadData(options);
  if (layout) ExpectTheSameInPieces(options, loaded);
  if (!loaded.ok()) {
    const absl::string_view message = loaded.status().message();
    FUZZ_EXPECT(message.find(file.path()) != absl::string_view::npos ||
                message.find(targets.path()) != absl::string_view::npos);
    return 0;
  }
  const weft::Dataset& dataset = **loaded;
  FUZZ_EXPECT(dataset.train.size() > 0);
  weft::EvaluationOptions evaluation;
  evaluation.kind = dataset.kind;
  evaluation.source_tokenizer = dataset.source_tokenizer.get();
  evaluation.target_tokenizer = dataset.target_tokenizer.get();
  evaluation.class_names = dataset.class_names;
  evaluation.window = options.window;
  evaluation.columns = options.columns;
  // What was good to train on is good to score.
  std::vector<std::string> paths = {file.path()};
  paths.insert(paths.end(), options.train_targets.begin(), options.train_targets.end());
  FUZZ_EXPECT(weft::LoadEvaluationData(paths, evaluation).ok());
  return 0;
}
