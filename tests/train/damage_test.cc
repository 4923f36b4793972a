// B094: files that were damaged, cut, extended or forged are refused with the place, without a crash and within little memory.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "data/hash.h"
#include "gtest/gtest.h"
#include "tests/train/temporary_folder.h"
#include "train/checkpoint.h"

namespace weft {
namespace {

constexpr int64_t kMoreMemory = 64 << 20;  // bytes beyond the size of the file

int64_t PeakBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

// Runs `body` in a child process, whose peak memory starts as that of this process is now. True if it returned true, and took
// no more than `bytes`; what went wrong is on stderr.
bool InChild(int64_t bytes, const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int64_t before = PeakBytes();
    bool good = body();
    if (const int64_t taken = PeakBytes() - before; taken > bytes) {
      std::fprintf(stderr, "took %lld bytes, allowed %lld\n", static_cast<long long>(taken), static_cast<long long>(bytes));
      good = false;
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// True if opening the file fails with exit code 1 and a message that has its name and the place.
bool IsRefused(const std::string& path, const std::string& what) {
  const absl::Status status = Checkpoint::Open(path).status();
  const absl::string_view message = status.message();
  const bool place = absl::StrContains(message, "byte") || absl::StrContains(message, "tensor \"") ||
                     absl::StrContains(message, "is empty") || absl::StrContains(message, "checkpoint format ");
  if (ExitCode(status) == 1 && absl::StrContains(message, path) && place) return true;
  std::fprintf(stderr, "%s: %s\n", what.c_str(), status.ToString().c_str());
  return false;
}

class Damage : public testing::Test {
 protected:
  Damage() {
    std::vector<float> values(3000, 0.5f);
    CheckpointMeta meta;
    meta.step = 7;
    meta.config_toml = std::string(500, '#');
    meta.source_tokenizer = {"char", {"a", "b", "c"}, false, false};
    meta.history = {{5, "loss", 1.5}, {7, "loss", 1.25}};
    const absl::Status status = SaveCheckpoint(
        path_, meta,
        {{"weight", Tensor::Of(absl::MakeSpan(values), {3, 1000})}, {"bias", Tensor(values.data(), DType::kF32, {3})}});
    EXPECT_TRUE(status.ok()) << status;
    good_ = BytesOf(path_);
  }
  bool Refused(const std::string& bytes, const std::string& what) {
    PutBytes(path_, bytes);
    return IsRefused(path_, what);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.Path("a.weft");
  std::string good_;
};

// One random damage of a kind: cut, one bit, one byte, a run of zeros, something put in, taken out or appended.
std::string Damaged(const std::string& good, std::mt19937* random, std::string* what) {
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(*random); };
  std::string bytes = good;
  const size_t at = below(good.size());
  const size_t kind = below(7);
  *what = absl::StrCat("damage ", kind, " at byte ", at);
  switch (kind) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes[at] ^= static_cast<char>(1 << below(8));
      break;
    case 2:
      bytes[at] = static_cast<char>(bytes[at] + 1 + static_cast<int>(below(255)));
      break;
    case 3:
      for (size_t i = at; i < std::min(at + 512, bytes.size()); ++i) bytes[i] = '\0';
      break;
    case 4:
      bytes.insert(at, std::string(1 + below(100), static_cast<char>(below(256))));
      break;
    case 5:
      bytes.erase(at, 1 + below(100));
      break;
    default:
      bytes.append(std::string(1 + below(100), static_cast<char>(below(256))));
  }
  return bytes;
}

TEST_F(Damage, AThousandDamagesAreAllRefusedWithTheirPlaceInLittleMemory) {
  std::mt19937 random(1);
  int damages = 0;
  for (int group = 0; group < 20; ++group) {
    std::vector<std::pair<std::string, std::string>> files;
    while (files.size() < 50) {
      std::string what, bytes = Damaged(good_, &random, &what);
      if (bytes != good_) files.emplace_back(std::move(bytes), std::move(what));
    }
    damages += static_cast<int>(files.size());
    EXPECT_TRUE(InChild(static_cast<int64_t>(good_.size()) + kMoreMemory,
                        [&] {
                          bool all = true;
                          for (const auto& [bytes, what] : files) all &= Refused(bytes, what);
                          return all;
                        }))
        << "group " << group;
  }
  EXPECT_EQ(damages, 1000);
}

TEST_F(Damage, EveryForgedHeaderFieldIsRefusedInLittleMemory) {
  for (size_t field = 0; field < 64; field += 8) {
    for (const uint64_t value : {~uint64_t{0}, uint64_t{1} << 40, uint64_t{0}}) {
      std::string forged = good_;
      std::memcpy(forged.data() + field, &value, sizeof(value));
      if (forged == good_) continue;  // the reserved fields are 0
      EXPECT_TRUE(InChild(static_cast<int64_t>(good_.size()) + kMoreMemory,
                          [&] { return Refused(forged, absl::StrCat("field at ", field)); }));
    }
  }
}

// Each 8 bytes of the archive in turn, with a checksum that fits: what a forger, not a disk, makes. Sizes of texts and lists
// are among them. Some are values that any number may be, so the file may load; it must not crash or fill the memory.
TEST_F(Damage, ForgedSizesBehindAGoodChecksumTakeNoMemory) {
  uint64_t archive;
  std::memcpy(&archive, good_.data() + 24, sizeof(archive));
  ASSERT_LT(archive, 2000u);
  const size_t end = 64 + archive - 7;  // of the places
  for (const uint64_t value : {std::numeric_limits<uint64_t>::max(), uint64_t{1} << 40, uint64_t{1} << 30}) {
    int refused = 0;
    // Opens the file with `value` at this place. False: refused without its name.
    const auto open = [&](size_t at) {
      std::string forged = good_;
      std::memcpy(forged.data() + at, &value, sizeof(value));
      Hash64 hash;
      hash.Add(absl::string_view(forged).substr(0, 40));
      hash.Add(absl::string_view(forged).substr(48));
      const uint64_t digest = hash.Digest();
      std::memcpy(forged.data() + 40, &digest, sizeof(digest));
      PutBytes(path_, forged);
      const absl::Status status = Checkpoint::Open(path_).status();
      refused += status.ok() ? 0 : 1;
      return status.ok() || absl::StrContains(status.message(), path_);
    };
    // Few places a process: an address sanitizer holds on to what was freed.
    for (size_t first = 64; first < end; first += 50) {
      ASSERT_TRUE(InChild(static_cast<int64_t>(good_.size()) + kMoreMemory,
                          [&] {
                            bool named = true;
                            for (size_t at = first; at < std::min(first + 50, end); ++at) named &= open(at);
                            return named;
                          }))
          << value << " at " << first;
    }
    for (size_t at = 64; at < end; ++at) EXPECT_TRUE(open(at)) << value << " at " << at;
    EXPECT_GT(refused, 100) << value;
  }
}

TEST_F(Damage, ANewerFormatIsRefusedByItsNumber) {
  for (const uint64_t newer : {kCheckpointVersion + 1, uint64_t{1} << 40}) {
    std::string bytes = good_;
    std::memcpy(bytes.data() + 8, &newer, sizeof(newer));
    PutBytes(path_, bytes);
    const absl::Status status = Checkpoint::Open(path_).status();
    EXPECT_EQ(ExitCode(status), 1);
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  absl::StrCat(path_, ": checkpoint format ", newer,
                                               " is newer than this build, which reads up to format ", kCheckpointVersion)))
        << status;
  }
}

}  // namespace
}  // namespace weft
