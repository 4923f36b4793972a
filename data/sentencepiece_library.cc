#include "data/sentencepiece_library.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace weft::library {
namespace {

using Settings = std::unordered_map<std::string, std::string>;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581 stands for a space inside the library

// Rows as the lines of a table "text TAB count".
class Rows : public sentencepiece::SentenceIterator {
 public:
  explicit Rows(const std::vector<WeightedText>& rows) : rows_(rows) { Fill(); }
  bool done() const override { return at_ == rows_.size(); }
  void Next() override {
    ++at_;
    Fill();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void Fill() {
    if (done()) return;
    line_ = rows_[at_].first;
    line_.push_back('\t');
    line_.append(std::to_string(rows_[at_].second));
  }
  const std::vector<WeightedText>& rows_;
  size_t at_ = 0;
  std::string line_;
};

// Nothing of the library's own: no added or removed spaces, no control symbols, no log on stderr.
Settings BaseSettings(const std::string& model_type, int64_t vocab_size, const std::string& normalization) {
  return {{"model_type", model_type},
          {"vocab_size", std::to_string(vocab_size)},
          {"normalization_rule_name", normalization},
          {"input_format", "tsv"},
          {"add_dummy_prefix", "false"},
          {"remove_extra_whitespaces", "false"},
          {"unk_piece", "<\t>"},  // a text that has the name is cut there, so one that no row can have
          {"bos_id", "-1"},
          {"eos_id", "-1"},
          {"pad_id", "-1"},
          {"num_threads", "1"},
          {"shuffle_input_sentence", "false"},
          {"max_sentence_length", "1000000"},
          {"minloglevel", "3"}};
}

// As many digits as tell the number from any other; std::to_string has six.
std::string Digits(double number) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), number).ptr};
}

std::string WithSpaces(std::string_view piece) {
  std::string text;
  while (true) {
    const size_t at = piece.find(kSpace);
    text += piece.substr(0, at);
    if (at == std::string_view::npos) return text;
    text += ' ';
    piece.remove_prefix(at + kSpace.size());
  }
}

// A model with the named normalisation and the pieces "a", "b" and a space; "" for a name that the library does not have.
std::string CharacterModel(const std::string& normalization) {
  const std::vector<WeightedText> rows = {{"a b", 1}};
  Rows lines(rows);
  std::string model;
  const Settings settings = BaseSettings("char", 4, normalization);
  return sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model).ok() ? model : "";
}

// A number as protocol buffers write it, seven bits a byte, taken from the front; 0 if `bytes` end in it.
uint64_t TakeNumber(std::string_view* bytes) {
  uint64_t number = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    number |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return number;
  }
  return 0;
}

// The text or message in field `wanted` of a message that protocol buffers wrote; empty without one.
std::string_view FieldOf(std::string_view message, uint64_t wanted) {
  while (!message.empty()) {
    const uint64_t tag = TakeNumber(&message);
    uint64_t size = 0;
    switch (tag & 7) {
      case 0:  // a number
        TakeNumber(&message);
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = TakeNumber(&message);
        if (tag >> 3 == wanted) return message.substr(0, size);
        break;
      case 5:
        size = 4;
        break;
      default:
        return {};
    }
    message.remove_prefix(std::min<uint64_t>(size, message.size()));
  }
  return {};
}

}  // namespace

TrainResult TrainPieces(const std::vector<WeightedText>& rows, const TrainOptions& options) {
  // With its <unk>, which it insists on.
  Settings settings = BaseSettings(options.bpe ? "bpe" : "unigram", options.pieces + 1, "identity");
  settings["character_coverage"] = Digits(options.coverage);
  Rows lines(rows);
  TrainResult result;
  sentencepiece::util::Status status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &result.model);
  sentencepiece::SentencePieceProcessor model;
  if (status.ok()) status = model.LoadFromSerializedProto(result.model);
  if (!status.ok()) {
    result.error = status.ToString();
    return result;
  }
  for (int id = 0; id < model.GetPieceSize(); ++id) {
    if (!model.IsUnknown(id)) result.pieces.emplace_back(WithSpaces(model.IdToPiece(id)), model.GetScore(id));
  }
  result.ok = true;
  return result;
}

std::string NormalizationRules(const std::string& name) {
  // In ModelProto the normalizer_spec is field 3, in that the precompiled_charsmap field 2 (sentencepiece_model.proto).
  return std::string(FieldOf(FieldOf(CharacterModel(name), 3), 2));
}

std::vector<std::string> EncodeByLibrary(const std::string& model, std::string_view text) {
  sentencepiece::SentencePieceProcessor processor;
  std::vector<std::string> pieces;
  if (!processor.LoadFromSerializedProto(model).ok() || !processor.Encode(text, &pieces).ok()) return pieces;
  for (std::string& piece : pieces) piece = WithSpaces(piece);
  return pieces;
}

std::vector<std::string> NormalizeByLibrary(const std::string& name, const std::vector<std::string>& texts) {
  // It normalises only as a part of encoding: by a model that knows two letters, whose unknown pieces are the text itself.
  sentencepiece::SentencePieceProcessor processor;
  std::vector<std::string> normalized;
  if (!processor.LoadFromSerializedProto(CharacterModel(name)).ok()) return normalized;
  for (const std::string& text : texts) {
    std::vector<std::string> pieces;
    if (!processor.Encode(text, &pieces).ok()) return normalized;
    std::string& joined = normalized.emplace_back();
    for (const std::string& piece : pieces) joined += WithSpaces(piece);
  }
  return normalized;
}

}  // namespace weft::library
