// A data file of any bytes, as pairs, labels or text, whole and as validation data too, with tokenizers by the mode byte.
#include <memory>

#include "data/load.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::FuzzFile file;
  const weft::FuzzInput input(data, size);
  file.Put(input.rest);
  constexpr const char* kKinds[] = {"pairs", "pairs", "labels", "text"};
  constexpr const char* kTokenizers[] = {"word", "byte", "word", "char"};
  weft::DataOptions options;
  options.kind = kKinds[input.mode & 3];
  options.train = file.path();
  if (input.mode & 4) options.valid = file.path();
  options.source_tokenizer.kind = kTokenizers[(input.mode >> 3) & 3];
  options.target_tokenizer.kind = kTokenizers[(input.mode >> 5) & 3];
  options.shared_tokenizer = options.kind == "pairs" && (input.mode & 128) != 0;
  if (options.kind == "text") options.window = 3;
  const absl::StatusOr<std::unique_ptr<weft::Dataset>> loaded = weft::LoadData(options);
  if (!loaded.ok()) {
    FUZZ_EXPECT(loaded.status().message().find(file.path()) != absl::string_view::npos);
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
  // What was good to train on is good to score.
  FUZZ_EXPECT(weft::LoadEvaluationData(file.path(), evaluation).ok());
  return 0;
}
