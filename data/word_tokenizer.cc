#include "data/word_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"
#include "data/text_file.h"
#include "data/utf8.h"

namespace weft {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

}  // namespace

absl::string_view WordTokenizer::NextWord(absl::string_view text, int64_t* offset) {
  const int64_t size = static_cast<int64_t>(text.size());
  int64_t begin = *offset;
  while (begin < size && IsSpace(text[begin])) ++begin;
  int64_t end = begin;
  if (end < size && text[end] == '\n') {
    ++end;
  } else {
    while (end < size && !IsSpace(text[end]) && text[end] != '\n') ++end;
  }
  *offset = end;
  return text.substr(begin, end - begin);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> WordTokenizer::Build(const TokenizerOptions& options, TextPieces texts) {
  absl::flat_hash_map<std::string, int64_t> places;  // word -> its place in `counts`, which has an order of its own
  std::vector<std::pair<std::string, int64_t>> counts;
  WEFT_RETURN_IF_ERROR(texts([&](absl::string_view text) -> absl::Status {
    WEFT_RETURN_IF_ERROR(ValidateUtf8(text, "training text"));
    int64_t offset = 0;
    while (true) {
      const absl::string_view word = NextWord(text, &offset);
      if (word.empty()) break;
      const auto [place, added] = places.try_emplace(word, static_cast<int64_t>(counts.size()));
      if (added) counts.emplace_back(std::string(word), 0);
      ++counts[place->second].second;
    }
    return absl::OkStatus();
  }));
  std::sort(counts.begin(), counts.end(),
            [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  std::vector<std::string> words;
  for (auto& [word, count] : counts) {
    if (count < options.min_count || (options.max_size > 0 && static_cast<int64_t>(words.size()) == options.max_size)) break;
    words.push_back(std::move(word));
  }
  return std::unique_ptr<Tokenizer>(new WordTokenizer(std::move(words), options.specials, options.unknown, options.joiner));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> WordTokenizer::FromSymbols(absl::Span<const std::string> symbols, bool specials,
                                                                      bool unknown, absl::string_view joiner) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    int64_t offset = 0;
    if (symbols[i].empty() || NextWord(symbols[i], &offset) != symbols[i]) {
      return absl::DataLossError(absl::StrCat("word tokenizer: symbol ", i, " is not a word: ", Quote(symbols[i])));
    }
  }
  if (joiner.find_first_of(" \t\n") != absl::string_view::npos) {
    return absl::DataLossError(absl::StrCat("word tokenizer: the joiner ", Quote(joiner), " is no part of a word"));
  }
  return std::unique_ptr<Tokenizer>(new WordTokenizer({symbols.begin(), symbols.end()}, specials, unknown, joiner));
}

WordTokenizer::WordTokenizer(std::vector<std::string> words, bool specials, bool unknown, absl::string_view joiner)
    : Tokenizer(static_cast<int64_t>(words.size()), specials, unknown), words_(std::move(words)), joiner_(joiner) {
  for (size_t id = 0; id < words_.size(); ++id) ids_.emplace(words_[id], static_cast<int32_t>(id));
}

int64_t WordTokenizer::TryEncode(absl::string_view text, std::vector<int32_t>* ids) const {
  int64_t offset = 0;
  while (true) {
    const absl::string_view word = NextWord(text, &offset);
    if (word.empty()) return -1;
    const auto found = ids_.find(word);
    const int32_t id = found != ids_.end() ? found->second : unk();
    if (id < 0) return word.data() - text.data();
    ids->push_back(id);
  }
}

std::string WordTokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  bool glue = true;    // no space before the next word
  bool joins = false;  // the last word ends in the joiner
  for (int32_t id : ids) {
    WEFT_CHECK(0 <= id && id < size()) << "id " << id << " of a vocabulary of " << size();
    if (id == bos() || id == eos() || id == sep()) continue;
    const std::string word = TokenText(id);
    const bool newline = word == "\n";
    if (!glue && !newline) {
      if (joins) {
        text.resize(text.size() - joiner_.size());
      } else {
        text.push_back(' ');
      }
    }
    text += word;
    glue = newline;
    joins = EndsInJoiner(word);
  }
  return text;
}

bool WordTokenizer::EndsInJoiner(absl::string_view text) const { return !joiner_.empty() && absl::EndsWith(text, joiner_); }

std::string WordTokenizer::Detokenize(absl::string_view text) const {
  if (joiner_.empty()) return std::string(text);
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    absl::StrAppend(&out, text.substr(begin, end - begin));
    begin = end + 1;
    if (end == text.size()) break;
    // Only between two words: not before another space, a line's end or the text's.
    const bool word_follows = begin < text.size() && !IsSpace(text[begin]) && text[begin] != '\n';
    if (word_follows && EndsInJoiner(text.substr(0, end))) {
      out.resize(out.size() - joiner_.size());
    } else {
      out.push_back(' ');
    }
  }
  return out;
}

int64_t WordTokenizer::UnfinishedTail(absl::string_view text) const {
  if (!EndsInJoiner(text)) return Tokenizer::UnfinishedTail(text);
  const size_t space = text.find_last_of(" \n");
  return static_cast<int64_t>(text.size() - (space == absl::string_view::npos ? 0 : space + 1));
}

}  // namespace weft
