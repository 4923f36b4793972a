// targets.h comes first: it limits the targets for which foreach_target.h includes this file again.
// clang-format off
#include "autograd/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/dropout.cc"
#include "hwy/foreach_target.h"
// clang-format on

#include "autograd/kernels/dropout.h"

#include <algorithm>
#include <array>

#include "autograd/base/random.h"
#include "autograd/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {

// Whole blocks one by one, the last one cut.
void PlainWords(uint64_t key, uint64_t block, int64_t n, uint32_t* words) {
  for (int64_t i = 0; i < n; i += 4, ++block) {
    const std::array<uint32_t, 4> w = RandomKey{key}.Block(block);
    std::copy_n(w.data(), std::min<int64_t>(4, n - i), words + i);
  }
}

#if HWY_TARGET == HWY_SCALAR
void WordsU32(uint64_t key, uint64_t block, int64_t n, uint32_t* words) { PlainWords(key, block, n, words); }
#else
// One block a 64-bit lane. The 32-bit words of the counter sit in the low halves; the high halves hold what is left of earlier
// products, which MulEven does not look at. Constants: Salmon et al. 2011.
void WordsU32(uint64_t key, uint64_t block, int64_t n, uint32_t* words) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const auto m0 = hn::Set(d32, 0xD2511F53u), m1 = hn::Set(d32, 0xCD9E8D57u);
  const auto low_half = hn::Set(d, uint64_t{0xFFFFFFFF});
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes, block += static_cast<uint64_t>(lanes)) {
    auto c0 = hn::Add(hn::Set(d, block), hn::Iota(d, 0));
    auto c1 = hn::ShiftRight<32>(c0), c2 = hn::Zero(d), c3 = hn::Zero(d);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
      const auto p0 = hn::MulEven(hn::BitCast(d32, c0), m0), p1 = hn::MulEven(hn::BitCast(d32, c2), m1);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, uint64_t{k0}));
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, uint64_t{k1}));
      c1 = p1;
      c3 = p0;
    }
    const auto first = hn::Or(hn::And(c0, low_half), hn::ShiftLeft<32>(c1));
    const auto second = hn::Or(hn::And(c2, low_half), hn::ShiftLeft<32>(c3));
    HWY_ALIGN uint64_t pairs[2 * HWY_MAX_BYTES / sizeof(uint64_t)];
    hn::StoreInterleaved2(first, second, d, pairs);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(pairs);
    std::copy_n(bytes, 16 * lanes, reinterpret_cast<uint8_t*>(words + i));
  }
  PlainWords(key, block, n - i, words + i);
}
#endif

// Words in use at a time.
constexpr int64_t kChunk = 1024;

// Calls body(i, part, kept lanes as all ones or zero) for vectors of elements.
template <class Body>
HWY_INLINE void ForEachKept(uint64_t key, uint64_t first, uint32_t threshold, int64_t n, const Body& body) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const auto limit = hn::Set(du, threshold);
  // Room for a misaligned start and for the full vector that a tail reads.
  uint32_t words[kChunk + 4 + HWY_MAX_BYTES / sizeof(uint32_t)] = {};
  for (int64_t start = 0; start < n; start += kChunk) {
    const uint64_t element = first + static_cast<uint64_t>(start);
    const int64_t skip = static_cast<int64_t>(element % 4), count = std::min(kChunk, n - start);
    WordsU32(key, element / 4, skip + count, words);
    ForEachVector(count, [&](int64_t i, auto part) HWY_ATTR {
      const auto word = hn::LoadU(du, words + skip + i);
      const auto kept = hn::Eq(hn::Max(word, limit), word);
      body(start + i, part, hn::BitCast(d, hn::VecFromMask(du, kept)));
    });
  }
}

void ForwardF32(uint64_t key, uint64_t first, uint32_t threshold, float scale, const float* x, float* y, int64_t n) {
  const VF s = hn::Set(DF(), scale);
  ForEachKept(key, first, threshold, n, [&](int64_t i, auto part, VF kept) HWY_ATTR {
    Store(hn::And(kept, hn::Mul(s, Load(x + i, part))), y + i, part);
  });
}

void BackwardF32(uint64_t key, uint64_t first, uint32_t threshold, float scale, const float* dy, float* dx, int64_t n) {
  const VF s = hn::Set(DF(), scale);
  ForEachKept(key, first, threshold, n, [&](int64_t i, auto part, VF kept) HWY_ATTR {
    Store(hn::Add(Load(dx + i, part), hn::And(kept, hn::Mul(s, Load(dy + i, part)))), dx + i, part);
  });
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::kernels {
namespace {
HWY_EXPORT(WordsU32);
HWY_EXPORT(ForwardF32);
HWY_EXPORT(BackwardF32);

// floor(p 2^32). REQUIRES: 0 <= p < 1.
uint32_t Threshold(double p) { return static_cast<uint32_t>(p * 0x1p32); }
}  // namespace

void DropoutWords(uint64_t key, uint64_t first_block, int64_t n, uint32_t* words) {
  WEFT_DISPATCH(WordsU32)(key, first_block, n, words);
}

void DropoutForward(uint64_t key, uint64_t first_element, double p, const float* x, float* y, int64_t n) {
  if (p >= 1) {
    std::fill_n(y, n, 0.0f);
  } else if (p <= 0) {
    if (y != x) std::copy_n(x, n, y);
  } else {
    WEFT_DISPATCH(ForwardF32)(key, first_element, Threshold(p), static_cast<float>(1 / (1 - p)), x, y, n);
  }
}

void DropoutBackward(uint64_t key, uint64_t first_element, double p, const float* dy, float* dx, int64_t n) {
  if (p >= 1) return;
  if (p <= 0) {
    for (int64_t i = 0; i < n; ++i) dx[i] += dy[i];
  } else {
    WEFT_DISPATCH(BackwardF32)(key, first_element, Threshold(p), static_cast<float>(1 / (1 - p)), dy, dx, n);
  }
}

void DropoutForward(uint64_t key, uint64_t first_element, double p, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const bool kept = p <= 0 || (p < 1 && RandomKey{key}.Word(first_element + static_cast<uint64_t>(i)) >= Threshold(p));
    y[i] = kept ? x[i] * (p <= 0 ? 1.0 : 1 / (1 - p)) : 0.0;
  }
}

void DropoutBackward(uint64_t key, uint64_t first_element, double p, const double* dy, double* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const bool kept = p <= 0 || (p < 1 && RandomKey{key}.Word(first_element + static_cast<uint64_t>(i)) >= Threshold(p));
    if (kept) dx[i] += dy[i] * (p <= 0 ? 1.0 : 1 / (1 - p));
  }
}

}  // namespace weft::kernels
#endif  // HWY_ONCE
