// Tokens as scores of text count them: the tokenisations of sacreBLEU (Post, "A call for clarity in reporting BLEU scores", WMT
// 2018), which turn running text into words before n-grams are counted. Not those that a model is trained with. Pure functions
// on code points, thread-safe.
#ifndef WEFT_DATA_SCORES_TOKENS_H_
#define WEFT_DATA_SCORES_TOKENS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weft {

enum class ScoreTokenizer {
  k13a,   // "13a": WMT's mteval-v13a.pl: ASCII punctuation apart, but not in numbers; &quot; &amp; &lt; &gt; undone
  kIntl,  // "intl": mteval-v14.pl --international-tokenization: punctuation and symbols of all scripts apart
  kChar,  // "char": each code point but white space
  kNone,  // "none": at white space only
};

// The words between white space.
std::vector<std::u32string> Words(const std::u32string& text);

// The tokens of one line.
std::vector<std::u32string> ScoreTokens(ScoreTokenizer tokenizer, std::u32string line);

// Numbers for words, equal ones for equal words, in the order of their first look-up.
class WordNumbers {
 public:
  std::vector<int32_t> Of(const std::vector<std::u32string>& words);

 private:
  std::map<std::u32string, int32_t> numbers_;
};

}  // namespace weft

#endif  // WEFT_DATA_SCORES_TOKENS_H_
