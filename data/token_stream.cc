#include "data/token_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

template <class T>
void Pack(absl::Span<const int32_t> ids, char* out) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const T id = static_cast<T>(ids[i]);
    std::memcpy(out + i * sizeof(T), &id, sizeof(T));
  }
}

template <class T>
void Unpack(const char* packed, absl::Span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T id;
    std::memcpy(&id, packed + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int32_t>(id);
  }
}

void UnpackTokens(const char* packed, int64_t width, absl::Span<int32_t> out) {
  width == 1 ? Unpack<uint8_t>(packed, out) : width == 2 ? Unpack<uint16_t>(packed, out) : Unpack<int32_t>(packed, out);
}

}  // namespace

int64_t TokenWidth(int64_t vocabulary) { return vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4; }

void PackTokens(absl::Span<const int32_t> ids, int64_t width, std::string* out) {
  const size_t before = out->size();
  out->resize(before + ids.size() * static_cast<size_t>(width));
  char* bytes = out->data() + before;
  width == 1 ? Pack<uint8_t>(ids, bytes) : width == 2 ? Pack<uint16_t>(ids, bytes) : Pack<int32_t>(ids, bytes);
}

TokenStream::TokenStream(absl::Span<const int32_t> ids) {
  for (int32_t id : ids) {
    WEFT_CHECK_GE(id, 0);
    vocabulary_ = std::max<int64_t>(vocabulary_, id + int64_t{1});
  }
  width_ = TokenWidth(vocabulary_);
  size_ = static_cast<int64_t>(ids.size());
  PackTokens(ids, width_, &packed_);
}

TokenStream TokenStream::FromPacked(std::string packed, int64_t vocabulary) {
  TokenStream stream;
  stream.width_ = TokenWidth(vocabulary);
  stream.vocabulary_ = vocabulary;
  stream.size_ = static_cast<int64_t>(packed.size()) / stream.width_;
  stream.packed_ = std::move(packed);
  return stream;
}

TokenStream TokenStream::FromFile(InputFile file, int64_t offset, int64_t tokens, int64_t vocabulary) {
  TokenStream stream;
  stream.width_ = TokenWidth(vocabulary);
  stream.vocabulary_ = vocabulary;
  stream.size_ = tokens;
  stream.file_.emplace(std::move(file));
  stream.offset_ = offset;
  return stream;
}

absl::Status TokenStream::Read(int64_t first, absl::Span<int32_t> out) const {
  WEFT_CHECK(0 <= first && first + static_cast<int64_t>(out.size()) <= size_)
      << first << " + " << out.size() << " of " << size_;
  if (!file_.has_value()) {
    UnpackTokens(packed_.data() + first * width_, width_, out);
    return absl::OkStatus();
  }
  std::array<char, 1 << 14> buffer;
  while (!out.empty()) {
    const int64_t count = std::min<int64_t>(static_cast<int64_t>(out.size()), static_cast<int64_t>(buffer.size()) / width_);
    const absl::Span<int32_t> part = out.first(count);
    WEFT_RETURN_IF_ERROR(file_->ReadAt(offset_ + first * width_, buffer.data(), count * width_));
    UnpackTokens(buffer.data(), width_, part);
    int32_t lowest = 0, highest = 0;
    for (int32_t id : part) {
      lowest = std::min(lowest, id);
      highest = std::max(highest, id);
    }
    if (lowest < 0 || highest >= vocabulary_) {
      return absl::DataLossError(absl::StrCat(file_->path(), ": found a token id outside of the vocabulary of ", vocabulary_,
                                              " among tokens ", first, " to ", first + count - 1,
                                              "; remove the file, it is made anew"));
    }
    first += count;
    out.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TokenStream::Count(int32_t id) const {
  std::vector<int32_t> ids(1 << 16);
  int64_t count = 0;
  for (int64_t first = 0; first < size_; first += static_cast<int64_t>(ids.size())) {
    const absl::Span<int32_t> part = absl::MakeSpan(ids).first(std::min<int64_t>(ids.size(), size_ - first));
    WEFT_RETURN_IF_ERROR(Read(first, part));
    count += std::count(part.begin(), part.end(), id);
  }
  return count;
}

absl::StatusOr<TokenStream> TokenStream::Slice(int64_t first, int64_t count) const {
  WEFT_CHECK(0 <= first && 0 <= count && first + count <= size_) << first << " + " << count << " of " << size_;
  if (!file_.has_value()) return FromPacked(packed_.substr(first * width_, count * width_), vocabulary_);
  WEFT_ASSIGN_OR_RETURN(InputFile file, file_->Duplicate());
  return FromFile(std::move(file), offset_ + first * width_, count, vocabulary_);
}

}  // namespace weft
