// Per-target building blocks of the f32 kernels (Highway; included once for each target, after foreach_target.h). Invariants:
// a tail goes through the same vector instructions as the rest, with a partial load and store, so the bits of an element depend
// neither on its place nor on n; sums start their lanes at the first element of the range. Nothing here reads or writes outside
// of [p, p + n). All functions are pure.
#if defined(WEFT_AUTOGRAD_KERNELS_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_AUTOGRAD_KERNELS_VECTOR_INL_H_
#undef WEFT_AUTOGRAD_KERNELS_VECTOR_INL_H_
#else
#define WEFT_AUTOGRAD_KERNELS_VECTOR_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DD = hn::ScalableTag<double>;
using VF = hn::Vec<DF>;
using VD = hn::Vec<DD>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

HWY_INLINE int64_t FloatLanes() { return static_cast<int64_t>(hn::Lanes(DF())); }

// The two kinds of place in a range: all lanes inside, or the first `count` of them.
struct Whole {};
struct Part {
  int64_t count;
};

HWY_INLINE VF Load(const float* p, Whole, float = 0) { return hn::LoadU(DF(), p); }
HWY_INLINE void Store(VF v, float* p, Whole) { hn::StoreU(v, DF(), p); }

// Lanes at and after part.count become `rest`.
HWY_INLINE VF Load(const float* p, Part part, float rest = 0) {
  const DF d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  for (int64_t i = 0; i < FloatLanes(); ++i) lanes[i] = i < part.count ? p[i] : rest;
  return hn::Load(d, lanes);
#else
  const auto mask = hn::FirstN(d, static_cast<size_t>(part.count));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), hn::Set(d, rest));
#endif
}
HWY_INLINE void Store(VF v, float* p, Part part) {
  const DF d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < part.count; ++i) p[i] = lanes[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(part.count)), d, p);
#endif
}

// Calls body(i, Whole{}) for each full vector at i, i + lanes, ..., then body(i, Part{count}) for what is left.
template <class Body>
HWY_INLINE void ForEachVector(int64_t n, const Body& body) {
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole{});
  if (i < n) body(i, Part{n - i});
}

// A float vector as two of doubles, in order.
struct Wide {
  VD low, high;
};
#if HWY_TARGET == HWY_SCALAR  // one lane: it is `low`
HWY_INLINE Wide Widen(VF v) { return {hn::PromoteTo(DD(), v), hn::Zero(DD())}; }
HWY_INLINE VF Narrow(Wide w) { return hn::DemoteTo(DF(), w.low); }
#else
HWY_INLINE Wide Widen(VF v) {
  const DD d;
  const hn::Half<DF> half;
  return {hn::PromoteTo(d, hn::LowerHalf(half, v)), hn::PromoteTo(d, hn::UpperHalf(half, v))};
}
HWY_INLINE VF Narrow(Wide w) {
  const hn::Half<DF> half;
  return hn::Combine(DF(), hn::DemoteTo(half, w.high), hn::DemoteTo(half, w.low));
}
#endif

// w with zeros in the lanes at and after part.count.
HWY_INLINE Wide Keep(Wide w, Whole) { return w; }
HWY_INLINE Wide Keep(Wide w, Part part) {
  const DD d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t low = part.count < lanes ? part.count : lanes;
  return {hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(low)), w.low),
          hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(part.count - low)), w.high)};
}

// A sum of floats in double lanes: element i of the range always goes to the same lane. Products of two floats are exact.
struct DoubleSum {
  VD low, high;

  HWY_INLINE DoubleSum() : low(hn::Zero(DD())), high(hn::Zero(DD())) {}
  HWY_INLINE void Add(VF v) { Add(Widen(v)); }
  HWY_INLINE void Add(Wide w) {
    low = hn::Add(low, w.low);
    high = hn::Add(high, w.high);
  }
  HWY_INLINE void AddProduct(VF a, VF b) { AddProduct(Widen(a), Widen(b)); }
  HWY_INLINE void AddProduct(Wide a, Wide b) {
    low = hn::MulAdd(a.low, b.low, low);
    high = hn::MulAdd(a.high, b.high, high);
  }
  HWY_INLINE double Total() const {
#if HWY_TARGET == HWY_SCALAR  // `high` holds no element
    return hn::GetLane(low);
#else
    return hn::GetLane(hn::SumOfLanes(DD(), hn::Add(low, high)));
#endif
  }
};

// The larger of v and so_far; a NaN in v is passed over.
HWY_INLINE VF MaxIgnoringNan(VF v, VF so_far) { return hn::IfThenElse(hn::Gt(v, so_far), v, so_far); }

// Largest element of x[0, n) that is not NaN; -inf when there is none. Four chains, since one would wait for itself.
HWY_INLINE float MaxOf(const float* x, int64_t n) {
  const DF d;
  const int64_t lanes = FloatLanes();
  VF m0 = hn::Set(d, -kInfinity), m1 = m0, m2 = m0, m3 = m0;
  int64_t start = 0;
  for (; start + 4 * lanes <= n; start += 4 * lanes) {
    m0 = MaxIgnoringNan(hn::LoadU(d, x + start), m0);
    m1 = MaxIgnoringNan(hn::LoadU(d, x + start + lanes), m1);
    m2 = MaxIgnoringNan(hn::LoadU(d, x + start + 2 * lanes), m2);
    m3 = MaxIgnoringNan(hn::LoadU(d, x + start + 3 * lanes), m3);
  }
  ForEachVector(n - start,
                [&](int64_t i, auto part) HWY_ATTR { m0 = MaxIgnoringNan(Load(x + start + i, part, -kInfinity), m0); });
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

// Index of the first element that equals `value` (for NaN: the first NaN), or -1.
HWY_INLINE int64_t FirstEqual(const float* x, float value, int64_t n) {
  const VF v = hn::Set(DF(), value);
  const bool nan = value != value;
  const int64_t lanes = FloatLanes();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF e = Load(x + i, Whole{});
    const int64_t found = hn::FindFirstTrue(DF(), nan ? hn::IsNaN(e) : hn::Eq(e, v));
    if (found >= 0) return i + found;
  }
  for (; i < n; ++i) {
    if (nan ? x[i] != x[i] : x[i] == value) return i;
  }
  return -1;
}

// What the exponentials share, for kN vectors at once, whose steps take turns: each waits for the one before it in its own
// vector. e^(x + low) = 2^n m with n = round(x / ln 2), m = e^r for r = x - n ln 2 + low in [-0.347, 0.347] by a minimax
// polynomial of degree 6 (relative error 3.1e-9). ln 2 is taken in two parts of which the first has so few bits that n times it
// is exact (Cody and Waite 1980, chapter 6). `shifted` is round + n, whose last bits are n or, by the choice of `round`, n and
// a bias.
template <int kN>
struct ExpParts {
  VF mantissa[kN], shifted[kN];
};
template <int kN>
HWY_INLINE ExpParts<kN> SplitExp(const VF (&x)[kN], float round, const VF* low = nullptr) {
  const DF d;
  ExpParts<kN> e;
  VF n[kN], r[kN], r2[kN], q[kN];
  for (int i = 0; i < kN; ++i) e.shifted[i] = hn::MulAdd(x[i], hn::Set(d, 1.44269504f), hn::Set(d, round));
  for (int i = 0; i < kN; ++i) n[i] = hn::Sub(e.shifted[i], hn::Set(d, round));
  for (int i = 0; i < kN; ++i) r[i] = hn::MulAdd(n[i], hn::Set(d, -0.693359375f), x[i]);
  for (int i = 0; i < kN; ++i) r[i] = hn::MulAdd(n[i], hn::Set(d, 2.12194440e-4f), r[i]);
  for (int i = 0; i < kN && low != nullptr; ++i) r[i] = hn::Add(r[i], low[i]);
  for (int i = 0; i < kN; ++i) r2[i] = hn::Mul(r[i], r[i]);
  for (int i = 0; i < kN; ++i) q[i] = hn::MulAdd(hn::Set(d, 0.00138145813f), r[i], hn::Set(d, 0.00836872496f));
  for (int i = 0; i < kN; ++i) {
    q[i] = hn::MulAdd(q[i], r2[i], hn::MulAdd(hn::Set(d, 0.041668389f), r[i], hn::Set(d, 0.166665211f)));
  }
  for (int i = 0; i < kN; ++i) q[i] = hn::MulAdd(q[i], r[i], hn::Set(d, 0.49999994f));
  for (int i = 0; i < kN; ++i) e.mantissa[i] = hn::Add(hn::MulAdd(q[i], r2[i], r[i]), hn::Set(d, 1.0f));
  return e;
}

// ln of the smallest normal and of the largest float, rounded inwards.
constexpr float kLeastExponent = -87.3365402f, kLargestExponent = 88.7228317f;

// e^x. Measured against f64 over all exponents, on all targets: within 1 ulp from x = kLeastExponent on (results are normal
// numbers); 0 below (results that would be denormal are flushed); inf above kLargestExponent; NaN for NaN.
HWY_INLINE VF Exp(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF xs[1] = {x};
  const ExpParts<1> parts = SplitExp(xs, 12582912.0f);  // 3 2^22: the last bit of a sum is worth 1
  // n goes into the exponent of m as an integer: right also for n = 128, where m < 1.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, parts.shifted[0]));
  const VF scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, parts.mantissa[0]), exponent));
  const VF y = hn::IfThenElse(hn::Le(x, hn::Set(d, kLargestExponent)), scaled, hn::Mul(x, hn::Set(d, kInfinity)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kLeastExponent)), y);
}

// Each x becomes e^(x + low) for x <= 88 or NaN, anything for a larger x; |low| is below 0.01 or x is -inf, null: 0. Cheaper
// than Exp, as accurate.
template <int kN>
HWY_INLINE void ExpUpTo88(VF (&x)[kN], const VF* low = nullptr) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const ExpParts<kN> parts = SplitExp(x, 12583039.0f, low);  // 3 2^22 + 127: the last bits are those of 2^n's exponent
  for (int i = 0; i < kN; ++i) {
    const VF power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, parts.shifted[i])));
    x[i] = hn::IfThenZeroElse(hn::Lt(x[i], hn::Set(d, kLeastExponent)), hn::Mul(parts.mantissa[i], power));
  }
}
HWY_INLINE VF ExpUpTo88(VF x) {
  VF xs[1] = {x};
  ExpUpTo88(xs);
  return xs[0];
}

// ln x. Measured: within 1.1 ulp, denormals included; -inf for 0, NaN below, inf for inf.
HWY_INLINE VF Log(VF x) {
  const DF d;
  const VF zero = hn::Zero(d);
  VF y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -kInfinity), y);
  y = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, kInfinity)), y, hn::Add(x, x));  // inf and NaN are their own logarithm
}

}  // namespace
}  // namespace weft::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // WEFT_AUTOGRAD_KERNELS_VECTOR_INL_H_
