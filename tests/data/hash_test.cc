#include "data/hash.h"

#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

uint64_t HashOf(absl::string_view bytes) {
  Hash64 hash;
  hash.Add(bytes);
  return hash.Digest();
}

TEST(Hash64, AgreesWithPublishedXxh64Values) {
  EXPECT_EQ(HashOf(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(HashOf("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(HashOf("abc"), 0x44BC2CF5AD770999u);
}

TEST(Hash64, DoesNotDependOnHowBytesAreSplit) {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<char>(i * 7));
  const uint64_t whole = HashOf(bytes);
  for (size_t step : {1, 3, 8, 31, 32, 33, 64, 199}) {
    Hash64 hash;
    for (size_t at = 0; at < bytes.size(); at += step) hash.Add(absl::string_view(bytes).substr(at, step));
    EXPECT_EQ(hash.Digest(), whole) << step;
  }
}

TEST(Hash64, SeesEveryBitAndTheLength) {
  std::string bytes(100, '\0');
  const uint64_t whole = HashOf(bytes);
  for (size_t bit = 0; bit < 800; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_NE(HashOf(flipped), whole) << bit;
  }
  EXPECT_NE(HashOf(bytes + '\0'), whole);
}

}  // namespace
}  // namespace weft
