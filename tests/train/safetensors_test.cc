#include "train/safetensors.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autograd/base/status.h"
#include "gtest/gtest.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

std::string Length(uint64_t n) { return std::string(reinterpret_cast<const char*>(&n), sizeof(n)); }

template <class T>
std::string Raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string FileOf(const std::string& header, const std::string& data) { return Length(header.size()) + header + data; }

// A file with the one tensor `w`.
template <class T>
std::string OneTensor(const std::string& dtype, const std::vector<T>& values) {
  const std::string data = Raw(values);
  return FileOf(absl::StrCat("{\"w\":{\"dtype\":\"", dtype, "\",\"shape\":[", values.size(), "],\"data_offsets\":[0,",
                             data.size(), "]}}"),
                data);
}

absl::StatusOr<SafeTensors> OpenBytes(const TemporaryFolder& folder, const std::string& bytes) {
  PutBytes(folder.Path("f"), bytes);
  return SafeTensors::Open(folder.Path("f"));
}

void ExpectRefused(const TemporaryFolder& folder, const std::string& bytes, const std::string& what) {
  const absl::Status status = OpenBytes(folder, bytes).status();
  EXPECT_EQ(ExitCode(status), 1) << what;
  EXPECT_TRUE(absl::StrContains(status.message(), folder.Path("f"))) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), what)) << status << "\nwanted: " << what;
}

TEST(SafeTensors, ReadsTheSmallestFile) {
  const TemporaryFolder folder;
  const std::string bytes = OneTensor<float>("F32", {1.5f, -2});
  const absl::StatusOr<SafeTensors> file = OpenBytes(folder, bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->names(), std::vector<std::string>{"w"});
  EXPECT_EQ(*file->ReadAsDouble("w"), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(*file->ReadFloat("w"), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(file->ReadFloat("v").status().code(), absl::StatusCode::kNotFound);
}

TEST(SafeTensors, B100_ReadsEveryLegalLayout) {
  const TemporaryFolder folder;
  // A header of 54 bytes: the data is not aligned.
  const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_EQ(header.size(), 54u);
  const std::string w = Raw<float>({1.5f, -2});
  for (const std::string& spaces : {std::string(), std::string("  "), std::string(" \n\t ")}) {
    const absl::StatusOr<SafeTensors> file = OpenBytes(folder, FileOf(header + spaces, w));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*file->ReadAsDouble("w"), (std::vector<double>{1.5, -2}));
  }
  // Not sorted by offset, keys in any order, names with UTF-8 and slashes, a scalar, an empty tensor, metadata.
  const absl::StatusOr<SafeTensors> file =
      OpenBytes(folder, FileOf("{\"b/\xC3\xA9\":{\"data_offsets\":[8,12],\"shape\":[],\"dtype\":\"I32\"},"
                               "\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                               "\"none\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[8,8]},"
                               "\"__metadata__\":{\"format\":\"pt\"}}",
                               w + Raw<int32_t>({-3})));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->ReadInt64("b/\xC3\xA9"), (std::vector<int64_t>{-3}));
  EXPECT_EQ(file->Find("a")->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_TRUE(file->ReadAsDouble("none")->empty());
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

TEST(SafeTensors, B098_RefusesLengthsThatDoNotFit) {
  const TemporaryFolder folder;
  const std::string rest = OneTensor<float>("F32", {1.5f, -2}).substr(8);
  ExpectRefused(folder, "", "it has 0 bytes");
  ExpectRefused(folder, "1234567", "it has 7 bytes");
  ExpectRefused(folder, Length(0), "does not start with {");
  ExpectRefused(folder, "12345678", "allowed are 100000000");
  ExpectRefused(folder, Length(1), "in a file of 8");
  for (uint64_t n : {~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 40, uint64_t{100'000'001}}) {
    ExpectRefused(folder, Length(n) + rest, "allowed are 100000000");
  }
  ExpectRefused(folder, Length(rest.size() + 8) + rest, absl::StrCat("in a file of ", rest.size() + 8));
  ExpectRefused(folder, Length(0) + rest, "does not start with {");
}

TEST(SafeTensors, B098_RefusesBadHeadersQuickly) {
  const TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  ExpectRefused(folder, FileOf("[]", ""), "does not start with {");
  ExpectRefused(folder, FileOf("{", ""), "not valid JSON");
  ExpectRefused(folder, FileOf("{\"\xFF\":{}}", ""), "not valid JSON in UTF-8");
  ExpectRefused(folder, FileOf(std::string(100000, '['), ""), "does not start with {");
  ExpectRefused(folder, FileOf("{\"w\":" + std::string(100000, '['), ""), "nested too deep");
  ExpectRefused(folder, FileOf("{\"w\":" + std::string(100000, '[') + std::string(100000, ']') + "}", ""), "nested too deep");
  ExpectRefused(folder, FileOf(R"({"w":1})", ""), "is not an object");
  const std::string entry = R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  ExpectRefused(folder, FileOf("{" + entry + "," + entry + "}", "abcd"), "repeats the key \"w\"");
  ExpectRefused(folder, FileOf(R"({"__metadata__":{"a":1}})", ""), "is not a string");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(SafeTensors, RefusesEntriesThatDoNotFitTheData) {
  const TemporaryFolder folder;
  const auto refuse = [&](const std::string& dtype, const std::string& shape, const std::string& range,
                          const std::string& what) {
    ExpectRefused(
        folder, FileOf("{\"w\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + range + "}}", "12345678"),
        what);
  };
  refuse("\"F32\"", "[3]", "[0,8]", "that is 12 bytes");
  refuse("\"F32\"", "[2]", "[0,16]", "in 8 bytes of data");
  refuse("\"F32\"", "[2]", "[8,0]", "data_offsets [8, 0]");
  refuse("\"F32\"", "[2]", "[0]", "data_offsets [0]");
  refuse("\"F32\"", "[-2]", "[0,8]", "has -2 in \"shape\"");
  refuse("\"F32\"", "[2.0]", "[0,8]", "has 2.0 in \"shape\"");
  refuse("\"F32\"", "[18446744073709551615]", "[0,8]", "allowed integers");
  refuse("\"F32\"", "[4294967296,4294967296]", "[0,8]", "too large");
  refuse("\"F32\"", "[1]", "[0,4]", "end at byte");
  refuse("\"F32\"", "[1]", "[4,8]", "with a gap");
  refuse("\"F31\"", "[2]", "[0,8]", "unknown dtype");
  refuse("7", "[2]", "[0,8]", "no \"dtype\"");
  ExpectRefused(
      folder,
      FileOf(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
             "12345678"),
      "inside the one before");
}

TEST(SafeTensors, B101_HalfTypesAreExact) {
  const TemporaryFolder folder;
  absl::StatusOr<SafeTensors> f16 =
      OpenBytes(folder, OneTensor<uint16_t>("F16", {0x3C01, 0x0001, 0x7C00, 0xFBFF, 0x8000, 0x7E00}));
  ASSERT_TRUE(f16.ok()) << f16.status();
  const std::vector<double> half = *f16->ReadAsDouble("w");
  EXPECT_EQ(half[0], 1.0009765625);
  EXPECT_EQ(half[1], std::ldexp(1.0, -24));
  EXPECT_EQ(half[2], INFINITY);
  EXPECT_EQ(half[3], -65504);
  EXPECT_TRUE(half[4] == 0 && std::signbit(half[4]));
  EXPECT_TRUE(std::isnan(half[5]));
  absl::StatusOr<SafeTensors> bf16 = OpenBytes(folder, OneTensor<uint16_t>("BF16", {0x3FC0, 0x0001, 0x7F80, 0x4049}));
  ASSERT_TRUE(bf16.ok());
  EXPECT_EQ(*bf16->ReadAsDouble("w"), (std::vector<double>{1.5, std::ldexp(1.0, -133), INFINITY, 3.140625}));
}

TEST(SafeTensors, B101_Bf16RoundsToNearestTiesToEven) {
  EXPECT_EQ(ToBf16(1.00390625f), 0x3F80);
  EXPECT_EQ(ToBf16(1.01171875f), 0x3F82);
  EXPECT_EQ(ToBf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(ToBf16(-INFINITY), 0xFF80);
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(std::bit_cast<float>(0x7F800001u)))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = FromBf16(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(ToBf16(value), bits);
  }
}

TEST(SafeTensors, B101_NothingIsNarrowedSilently) {
  const TemporaryFolder folder;
  absl::StatusOr<SafeTensors> file = OpenBytes(folder, OneTensor<double>("F64", {0.5, 1e300}));
  ASSERT_TRUE(file.ok());
  const absl::Status narrowed = file->ReadFloat("w").status();
  EXPECT_TRUE(absl::StrContains(narrowed.message(), "element 1 is 1e+300 (F64), which f32 cannot hold")) << narrowed;
  EXPECT_EQ(ExitCode(narrowed), 1);
  EXPECT_EQ((*file->ReadAsDouble("w"))[1], 1e300);
  EXPECT_FALSE(file->ReadInt64("w").ok());

  const int64_t large = (int64_t{1} << 53) + 1;
  file = OpenBytes(folder, OneTensor<int64_t>("I64", {1, large, std::numeric_limits<int64_t>::max()}));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(absl::StrContains(file->ReadAsDouble("w").status().message(), absl::StrCat("element 1 is ", large)));
  EXPECT_EQ((*file->ReadInt64("w"))[2], std::numeric_limits<int64_t>::max());
  file = OpenBytes(folder, OneTensor<int64_t>("I64", {int64_t{1} << 62, std::numeric_limits<int64_t>::min()}));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file->ReadAsDouble("w"))[1], -std::ldexp(1.0, 63));
  file = OpenBytes(folder, OneTensor<uint64_t>("U64", {~uint64_t{0}}));
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(file->ReadAsDouble("w").ok());
  EXPECT_FALSE(file->ReadInt64("w").ok());
}

TEST(SafeTensors, B100_WrittenFilesReadBackBitwise) {
  const TemporaryFolder folder;
  std::vector<float> f = {1.5f, std::bit_cast<float>(0x7FC12345u), -0.0f};
  std::vector<double> d = {1e300, -5e-324};
  std::vector<int32_t> i = {-7};
  std::vector<uint16_t> h = {0x3FC0};
  const std::string path = folder.Path("out");
  const absl::Status status = WriteSafeTensors(path,
                                               {{"z/\xC3\xA9", Tensor::Of(absl::MakeSpan(f), {3, 1})},
                                                {"half", Tensor(h.data(), DType::kBF16, {1})},
                                                {"d", Tensor::Of(absl::MakeSpan(d), {2})},
                                                {"i", Tensor::Of(absl::MakeSpan(i), {})}},
                                               {{"format", "pt"}});
  ASSERT_TRUE(status.ok()) << status;
  const std::string bytes = BytesOf(path);
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof(length));
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  EXPECT_EQ(bytes.size(), 8 + length + 16 + 12 + 4 + 2);

  const absl::StatusOr<SafeTensors> file = SafeTensors::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto& [name, entry] : file->entries()) {
    EXPECT_EQ(entry.offset % (entry.bytes / std::max<int64_t>(entry.elements(), 1)), 0) << name;
  }
  const std::vector<float> back = *file->ReadFloat("z/\xC3\xA9");
  EXPECT_EQ(std::memcmp(back.data(), f.data(), 12), 0);
  EXPECT_EQ(*file->ReadAsDouble("d"), d);
  EXPECT_EQ(*file->ReadInt64("i"), (std::vector<int64_t>{-7}));
  EXPECT_EQ(*file->ReadFloat("half"), (std::vector<float>{1.5f}));
  EXPECT_EQ(file->metadata().at("format"), "pt");
  std::vector<double> into(3);
  EXPECT_TRUE(file->ReadInto("z/\xC3\xA9", Tensor::Of(absl::MakeSpan(into), {3, 1})).ok());
  EXPECT_EQ(into[0], 1.5);
  EXPECT_TRUE(absl::StrContains(file->ReadInto("d", Tensor::Of(absl::MakeSpan(into), {3})).message(), "needed is [3]"));
}

TEST(SafeTensors, WriterRefusesBadNames) {
  const TemporaryFolder folder;
  float x = 0;
  const Tensor tensor(&x, DType::kF32, {1});
  for (const std::vector<NamedTensor>& tensors : {std::vector<NamedTensor>{{"", tensor}},
                                                  {{"a", tensor}, {"a", tensor}},
                                                  {{"__metadata__", tensor}},
                                                  {{"\xFF", tensor}}}) {
    EXPECT_EQ(WriteSafeTensors(folder.Path("out"), tensors).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(NamesIn(folder.path()).empty());
}

}  // namespace
}  // namespace weft
