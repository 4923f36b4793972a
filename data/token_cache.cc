#include "data/token_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autograd/base/status.h"
#include "data/file.h"
#include "data/hash.h"

namespace weft {
namespace {

// Raised when the layout, or what some tokenizer makes of a text, changes.
constexpr uint32_t kVersion = 2;

struct Header {
  char magic[8] = {'W', 'E', 'F', 'T', 'T', 'O', 'K', '\n'};
  uint32_t version = kVersion;
  uint32_t width = 0;  // bytes of an id
  int64_t tokens = 0;
  int64_t vocabulary = 0;
  uint64_t content_hash = 0;
  uint64_t fingerprint = 0;
  uint64_t tokens_hash = 0;  // of the bytes behind the header
  uint64_t header_hash = 0;  // of the bytes before this one
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);

absl::string_view BytesOf(const Header& header) { return {reinterpret_cast<const char*>(&header), sizeof(header)}; }

uint64_t HashOf(const Header& header) {
  Hash64 hash;
  hash.Add(BytesOf(header).substr(0, offsetof(Header, header_hash)));
  return hash.Digest();
}

Header HeaderFor(const TokenCacheKey& key) {
  Header header;
  header.width = static_cast<uint32_t>(TokenWidth(key.vocabulary));
  header.vocabulary = key.vocabulary;
  header.content_hash = key.content_hash;
  header.fingerprint = key.fingerprint;
  return header;
}

// The stream in the file at `path`: NotFound without one, DataLoss for one that is damaged or not ours.
absl::StatusOr<TokenStream> OpenTokens(const std::string& path, const TokenCacheKey& key) {
  WEFT_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  const auto refuse = [&](absl::string_view why) { return absl::DataLossError(absl::StrCat(path, ": ", why)); };
  Header found;
  if (file.size() < static_cast<int64_t>(sizeof(found))) return refuse("is shorter than its header");
  WEFT_RETURN_IF_ERROR(file.ReadAt(0, &found, sizeof(found)));
  Header expected = HeaderFor(key);
  expected.tokens = found.tokens;
  expected.tokens_hash = found.tokens_hash;
  expected.header_hash = HashOf(expected);
  if (BytesOf(found) != BytesOf(expected)) return refuse("its header is damaged, or of another text or version");
  const int64_t bytes = file.size() - static_cast<int64_t>(sizeof(found));
  if (bytes % found.width != 0 || bytes / found.width != found.tokens) return refuse("its length does not fit its header");
  Hash64 hash;
  std::string block(std::min<int64_t>(bytes, int64_t{1} << 20), '\0');
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(block.size())) {
    block.resize(std::min<int64_t>(static_cast<int64_t>(block.size()), bytes - at));
    WEFT_RETURN_IF_ERROR(
        file.ReadAt(static_cast<int64_t>(sizeof(found)) + at, block.data(), static_cast<int64_t>(block.size())));
    hash.Add(block);
  }
  if (hash.Digest() != found.tokens_hash) return refuse("the ids do not have their checksum");
  return TokenStream::FromFile(std::move(file), sizeof(found), found.tokens, key.vocabulary);
}

// Writes the file at `path`. `source_status` receives an error of `tokens` itself, which is then returned, too.
absl::Status MakeTokens(ReplacementFile* file, const TokenCacheKey& key, TokenSource tokens, absl::Status* source_status) {
  Header header = HeaderFor(key);
  WEFT_RETURN_IF_ERROR(file->Append(BytesOf(header)));
  Hash64 hash;
  std::string packed;
  absl::Status write_status;
  *source_status = tokens([&](absl::Span<const int32_t> ids) {
    packed.clear();
    PackTokens(ids, header.width, &packed);
    hash.Add(packed);
    header.tokens += static_cast<int64_t>(ids.size());
    return write_status = file->Append(packed);
  });
  if (!write_status.ok()) *source_status = absl::OkStatus();
  WEFT_RETURN_IF_ERROR(write_status);
  WEFT_RETURN_IF_ERROR(*source_status);
  header.tokens_hash = hash.Digest();
  header.header_hash = HashOf(header);
  return file->Finish(BytesOf(header));
}

absl::StatusOr<TokenStream> OpenOrMake(const std::string& folder, const TokenCacheKey& key, TokenSource tokens,
                                       std::string* report, absl::Status* source_status) {
  const std::string path = TokenCachePath(folder, key);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FileError(folder, "cannot create the folder of the token cache", error.value());
  absl::StatusOr<TokenStream> stream = OpenTokens(path, key);
  std::string how = "found there";
  if (!stream.ok()) {
    how = absl::IsDataLoss(stream.status()) ? "made anew, since the file there was damaged or not ours" : "made now";
    WEFT_ASSIGN_OR_RETURN(ReplacementFile file, ReplacementFile::Create(path));
    // Another process may have made it while this one waited.
    stream = OpenTokens(path, key);
    if (stream.ok()) {
      how = "made now by another process";
    } else {
      WEFT_RETURN_IF_ERROR(MakeTokens(&file, key, tokens, source_status));
      stream = OpenTokens(path, key);
    }
  }
  if (stream.ok()) absl::StrAppend(report, "token ids: ", path, ", ", how);
  return stream;
}

// Makes the folder for this user alone, or refuses what is there if another user may have put it there or can write to it.
absl::Status MakePrivateFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return FileError(folder, "cannot create the folder of the token cache", errno);
  }
  struct stat found;
  if (::lstat(folder.c_str(), &found) != 0) return FileError(folder, "cannot inspect", errno);
  if (S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    return absl::OkStatus();
  }
  const char* what = S_ISDIR(found.st_mode) ? "folder" : S_ISLNK(found.st_mode) ? "link" : "file";
  return absl::PermissionDeniedError(absl::StrFormat(
      "%s: found a %s of user %d with mode %03o, allowed a folder of user %d that nobody else can write to (chmod go-w)",
      folder, what, found.st_uid, found.st_mode & 0777, ::geteuid()));
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string TokenCachePath(const std::string& folder, const TokenCacheKey& key) {
  return absl::StrCat(folder, "/", absl::StrFormat("%016x-%016x.tokens", key.content_hash, key.fingerprint));
}

absl::StatusOr<TokenStream> OpenOrMakeTokens(const std::string& folder, const TokenCacheKey& key, TokenSource tokens,
                                             std::string* report) {
  absl::Status source_status;
  absl::StatusOr<TokenStream> stream = OpenOrMake(folder, key, tokens, report, &source_status);
  if (stream.ok() || !source_status.ok()) return stream;
  return absl::Status(stream.status().code(),
                      absl::StrCat("token cache: ", stream.status().message(), " (data.cache names its folder)"));
}

absl::StatusOr<TokenStream> CacheTokens(const std::string& folder, const TokenCacheKey& key, TokenSource tokens,
                                        std::string* report) {
  if (!folder.empty()) return OpenOrMakeTokens(folder, key, tokens, report);
  std::string failures;
  for (const CacheFolder& candidate : DefaultCacheFolders()) {
    absl::Status status = candidate.among_others ? MakePrivateFolder(candidate.path) : absl::OkStatus();
    if (status.ok()) {
      absl::Status source_status;
      absl::StatusOr<TokenStream> stream = OpenOrMake(candidate.path, key, tokens, report, &source_status);
      if (stream.ok() || !source_status.ok()) return stream;
      status = stream.status();
    }
    absl::StrAppend(&failures, failures.empty() ? "" : "; ", status.message());
  }
  WEFT_ASSIGN_OR_RETURN(TokenStream stream, HoldTokens(key.vocabulary, tokens));
  absl::StrAppend(report, "token ids: in memory, ", stream.size() * TokenWidth(key.vocabulary) / 1000000,
                  " MB, since no folder for a token cache can be used (set data.cache): ", failures);
  return stream;
}

absl::StatusOr<TokenStream> HoldTokens(int64_t vocabulary, TokenSource tokens) {
  std::string packed;
  WEFT_RETURN_IF_ERROR(tokens([&](absl::Span<const int32_t> ids) {
    PackTokens(ids, TokenWidth(vocabulary), &packed);
    return absl::OkStatus();
  }));
  packed.shrink_to_fit();
  return TokenStream::FromPacked(std::move(packed), vocabulary);
}

std::vector<CacheFolder> DefaultCacheFolders() {
  std::vector<CacheFolder> folders;
  const std::string xdg = Variable("XDG_CACHE_HOME"), home = Variable("HOME");
  if (!xdg.empty() && xdg[0] == '/') {  // others are to be ignored (XDG Base Directory Specification 0.8)
    folders.push_back({xdg + "/weft"});
  } else if (!home.empty()) {
    folders.push_back({home + "/.cache/weft"});
  }
  std::error_code error;
  const std::string temporary = std::filesystem::temp_directory_path(error).string();
  if (!error) folders.push_back({absl::StrCat(temporary, "/weft-cache-", ::getuid()), /*among_others=*/true});
  return folders;
}

}  // namespace weft
