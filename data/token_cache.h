// The token cache: files of the ids of large texts, so that a text is encoded once and its ids need not fit into memory. The
// name of a file is made of the hash of the text and the fingerprint of the tokenizer, so a changed text or vocabulary gets a
// new file and nothing in it can be out of date. Files may be removed at any time; a run that reads one keeps it open.
// Layout: a header of 64 bytes with checksums of itself and of the ids, then the ids as PackTokens writes them.
// Several processes may make the same file at once: one does, the others wait and use it.
#ifndef WEFT_DATA_TOKEN_CACHE_H_
#define WEFT_DATA_TOKEN_CACHE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/token_stream.h"

namespace weft {

// What identifies the ids of a text.
struct TokenCacheKey {
  uint64_t content_hash = 0;  // of the text
  uint64_t fingerprint = 0;   // of the tokenizer
  int64_t vocabulary = 0;     // its size
};

// Produces the ids in order: calls `take` until all are given or it returns an error, and returns that or its own. May be
// called several times.
using TokenSource = absl::FunctionRef<absl::Status(absl::FunctionRef<absl::Status(absl::Span<const int32_t>)> take)>;

// "FOLDER/<content hash>-<fingerprint>.tokens".
std::string TokenCachePath(const std::string& folder, const TokenCacheKey& key);

// The stream of the file for `key` in `folder`, which is made when missing; so is the file, from `tokens`, when it is missing
// or not whole. `report` receives where the ids are, and how they came there. Errors of files name the folder and what to do;
// those of `tokens` are returned as they are.
absl::StatusOr<TokenStream> OpenOrMakeTokens(const std::string& folder, const TokenCacheKey& key, TokenSource tokens,
                                             std::string* report);

// The ids of a text in the cache: in `folder`, an error if that cannot be used; with "" in the first of DefaultCacheFolders
// that can, else in memory, which `report` then says with the reasons. The folder among those of other users is used only if
// nobody but this user can write to it, since they know the name that it has and could put other ids there.
absl::StatusOr<TokenStream> CacheTokens(const std::string& folder, const TokenCacheKey& key, TokenSource tokens,
                                        std::string* report);
// The ids in memory, packed.
absl::StatusOr<TokenStream> HoldTokens(int64_t vocabulary, TokenSource tokens);

struct CacheFolder {
  std::string path;
  bool among_others = false;  // in a folder where every user may make files
};
// $XDG_CACHE_HOME/weft or $HOME/.cache/weft, then a folder of this user in the system's folder for temporary files.
std::vector<CacheFolder> DefaultCacheFolders();

}  // namespace weft

#endif  // WEFT_DATA_TOKEN_CACHE_H_
