#include "train/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autograd/base/check.h"
#include "autograd/base/status.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxHeader = 100'000'000;  // bytes; the limit of the format's reference reader
constexpr int kMaxDepth = 3;                 // { name: { shape: [ ...
constexpr char kMetadata[] = "__metadata__";

// Bytes of one element; 0 for an unknown dtype.
int64_t SizeOf(absl::string_view dtype) {
  for (absl::string_view name : {"F64", "I64", "U64"}) {
    if (dtype == name) return 8;
  }
  for (absl::string_view name : {"F32", "I32", "U32"}) {
    if (dtype == name) return 4;
  }
  for (absl::string_view name : {"F16", "BF16", "I16", "U16"}) {
    if (dtype == name) return 2;
  }
  for (absl::string_view name : {"I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"}) {
    if (dtype == name) return 1;
  }
  return 0;
}

template <class T>
T Load(const std::string& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

std::string ShapeString(absl::Span<const int64_t> dims) { return absl::StrCat("[", absl::StrJoin(dims, ", "), "]"); }

// Parses JSON text of bounded depth without repeated keys. The text is checked for UTF-8 on the way.
absl::StatusOr<Json> ParseHeader(absl::string_view text) {
  absl::Status problem;
  std::vector<std::set<std::string>> keys;  // of the open objects, by depth
  const Json::parser_callback_t check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= kMaxDepth && problem.ok()) problem = absl::DataLossError("is nested too deep");
      keys.resize(static_cast<size_t>(std::min(depth, kMaxDepth)) + 1);
      keys.back().clear();
    } else if (event == Json::parse_event_t::key && problem.ok()) {
      keys.resize(static_cast<size_t>(depth));
      if (!keys.back().insert(value.get<std::string>()).second) {
        problem = absl::DataLossError(absl::StrCat("repeats the key ", value.dump()));
      }
    }
    return problem.ok();  // false: the value is dropped, so a deep nest takes no memory
  };
  Json json = Json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  if (!problem.ok()) return problem;
  if (json.is_discarded()) return absl::DataLossError("is not valid JSON in UTF-8");
  if (!json.is_object()) return absl::DataLossError("is not a JSON object");
  return json;
}

// A list of integers >= 0.
absl::StatusOr<std::vector<int64_t>> Counts(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return absl::DataLossError(absl::StrCat("has no list \"", key, "\""));
  std::vector<int64_t> counts;
  for (const Json& item : *found) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
      return absl::DataLossError(absl::StrCat("has ", item.dump(), " in \"", key, "\", allowed integers from 0 to 2^63-1"));
    }
    counts.push_back(item.get<int64_t>());
  }
  return counts;
}

absl::StatusOr<SafeTensors::Entry> ParseEntry(const Json& object, int64_t data_start, int64_t data_size) {
  if (!object.is_object()) return absl::DataLossError("is not an object");
  SafeTensors::Entry entry;
  const auto dtype = object.find("dtype");
  if (dtype == object.end() || !dtype->is_string()) return absl::DataLossError("has no \"dtype\"");
  entry.dtype = dtype->get<std::string>();
  int64_t bytes = SizeOf(entry.dtype);
  if (bytes == 0) return absl::DataLossError(absl::StrCat("has the unknown dtype \"", entry.dtype, "\""));
  WEFT_ASSIGN_OR_RETURN(entry.shape, Counts(object, "shape"));
  WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> range, Counts(object, "data_offsets"));
  if (range.size() != 2 || range[0] > range[1] || range[1] > data_size) {
    return absl::DataLossError(absl::StrCat("has data_offsets ", ShapeString(range), " in ", data_size, " bytes of data"));
  }
  // A zero dimension makes the tensor empty, whatever the others are.
  if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) bytes = 0;
  for (int64_t n : entry.shape) {
    if (bytes != 0 && __builtin_mul_overflow(bytes, n, &bytes)) {
      return absl::DataLossError(absl::StrCat("has shape ", ShapeString(entry.shape), ", which is too large"));
    }
  }
  if (bytes != range[1] - range[0]) {
    return absl::DataLossError(absl::StrCat("has ", entry.dtype, " shape ", ShapeString(entry.shape), ", that is ", bytes,
                                            " bytes, but data_offsets ", ShapeString(range)));
  }
  entry.offset = data_start + range[0];
  entry.bytes = bytes;
  return entry;
}

bool IsFloat(absl::string_view dtype) { return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

// Calls f with a function index -> value (as stored, or a float for half types); false for a dtype without conversion.
template <class F>
bool WithLoader(absl::string_view dtype, const std::string& bytes, F f) {
  if (dtype == "F64") return f([&](int64_t i) { return Load<double>(bytes, i); }), true;
  if (dtype == "F32") return f([&](int64_t i) { return Load<float>(bytes, i); }), true;
  if (dtype == "F16") return f([&](int64_t i) { return FromF16(Load<uint16_t>(bytes, i)); }), true;
  if (dtype == "BF16") return f([&](int64_t i) { return FromBf16(Load<uint16_t>(bytes, i)); }), true;
  if (dtype == "I64") return f([&](int64_t i) { return Load<int64_t>(bytes, i); }), true;
  if (dtype == "U64") return f([&](int64_t i) { return Load<uint64_t>(bytes, i); }), true;
  if (dtype == "I32") return f([&](int64_t i) { return Load<int32_t>(bytes, i); }), true;
  if (dtype == "U32") return f([&](int64_t i) { return Load<uint32_t>(bytes, i); }), true;
  if (dtype == "I16") return f([&](int64_t i) { return Load<int16_t>(bytes, i); }), true;
  if (dtype == "U16") return f([&](int64_t i) { return Load<uint16_t>(bytes, i); }), true;
  if (dtype == "I8") return f([&](int64_t i) { return Load<int8_t>(bytes, i); }), true;
  if (dtype == "U8") return f([&](int64_t i) { return Load<uint8_t>(bytes, i); }), true;
  if (dtype == "BOOL") return f([&](int64_t i) { return static_cast<int32_t>(Load<uint8_t>(bytes, i) != 0); }), true;
  return false;
}

// Whether `to`, made from `from`, lost more than the rules in the header allow.
template <class To, class From>
bool Converts(From from, To to) {
  if constexpr (std::is_same_v<To, float> && std::is_floating_point_v<From>) {
    return std::isfinite(to) || !std::isfinite(from);
  } else if constexpr (std::is_same_v<To, double> && std::is_integral_v<From>) {
    // 2^63 and 2^64, to which the largest integers round, do not fit back.
    if (to >= static_cast<double>(std::numeric_limits<From>::max()) && sizeof(From) == 8) return false;
    return static_cast<From>(to) == from;
  } else if constexpr (std::is_same_v<To, int64_t>) {
    return !(std::is_same_v<From, uint64_t> && to < 0);
  } else {
    return true;
  }
}

template <class To>
absl::StatusOr<std::vector<To>> Convert(const std::string& where, const SafeTensors::Entry& entry, const std::string& bytes) {
  std::vector<To> result(static_cast<size_t>(entry.elements()));
  absl::Status status;
  const bool known = WithLoader(entry.dtype, bytes, [&](auto load) {
    for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i) {
      const auto from = load(i);
      result[i] = static_cast<To>(from);
      if (Converts(from, result[i])) continue;
      status = absl::FailedPreconditionError(absl::StrCat(where, ": element ", i, " is ", from, " (", entry.dtype, "), which ",
                                                          std::is_same_v<To, float>    ? "f32"
                                                          : std::is_same_v<To, double> ? "f64"
                                                                                       : "i64",
                                                          " cannot hold"));
      return;
    }
  });
  if (!known) return absl::FailedPreconditionError(absl::StrCat(where, ": dtype ", entry.dtype, " has no conversion"));
  if (!status.ok()) return status;
  return result;
}

absl::string_view FileDType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kI32:
      return "I32";
    case DType::kBF16:
      return "BF16";
  }
  return "?";
}

}  // namespace

int64_t SafeTensors::Entry::elements() const { return bytes / SizeOf(dtype); }

absl::StatusOr<SafeTensors> SafeTensors::Open(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  const int64_t size = file.size();
  const auto damaged = [&](auto... what) {
    return absl::DataLossError(absl::StrCat(path, ": not a safetensors file: ", what...));
  };
  if (size < 8) return damaged("it has ", size, " bytes, the length of the header alone takes 8");
  uint64_t length = 0;
  WEFT_RETURN_IF_ERROR(file.ReadAt(0, &length, sizeof(length)));
  if (length > static_cast<uint64_t>(kMaxHeader)) {
    return damaged("byte 0: header of ", length, " bytes, allowed are ", kMaxHeader);
  }
  if (length > static_cast<uint64_t>(size - 8)) return damaged("byte 0: header of ", length, " bytes in a file of ", size);
  std::string header(length, '\0');
  WEFT_RETURN_IF_ERROR(file.ReadAt(8, header.data(), static_cast<int64_t>(length)));
  if (!absl::StartsWith(header, "{")) return damaged("byte 8: the header does not start with {");
  SafeTensors tensors(std::move(file));
  const absl::Status status = tensors.Parse(header, 8 + static_cast<int64_t>(length));
  if (!status.ok()) return damaged(status.message());
  return tensors;
}

absl::Status SafeTensors::Parse(absl::string_view header, int64_t data_start) {
  const absl::StatusOr<Json> json = ParseHeader(header);
  if (!json.ok()) return absl::DataLossError(absl::StrCat("the header ", json.status().message()));
  for (const auto& [name, value] : json->items()) {
    if (name == kMetadata) {
      if (!value.is_object()) return absl::DataLossError("__metadata__ is not an object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return absl::DataLossError(absl::StrCat("__metadata__ \"", key, "\" is not a string"));
        metadata_[key] = text.get<std::string>();
      }
      continue;
    }
    absl::StatusOr<Entry> entry = ParseEntry(value, data_start, file_.size() - data_start);
    if (!entry.ok()) return absl::DataLossError(absl::StrCat("tensor \"", name, "\" ", entry.status().message()));
    entries_.emplace(name, *std::move(entry));
  }
  return CheckTiling(data_start);
}

absl::Status SafeTensors::CheckTiling(int64_t data_start) const {
  std::vector<std::pair<const std::string*, const Entry*>> order;
  for (const auto& [name, entry] : entries_) order.emplace_back(&name, &entry);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.second->offset, a.second->bytes) < std::make_pair(b.second->offset, b.second->bytes);
  });
  int64_t end = data_start;
  for (const auto& [name, entry] : order) {
    if (entry->offset != end) {
      return absl::DataLossError(absl::StrCat("tensor \"", *name, "\" starts at byte ", entry->offset, ", ",
                                              entry->offset < end ? "inside" : "with a gap behind",
                                              " the one before, which ends at ", end));
    }
    end = entry->offset + entry->bytes;
  }
  if (end == file_.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the tensors end at byte ", end, " of ", file_.size()));
}

std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const SafeTensors::Entry* SafeTensors::Find(absl::string_view name) const {
  const auto found = entries_.find(std::string(name));
  return found == entries_.end() ? nullptr : &found->second;
}

absl::StatusOr<const SafeTensors::Entry*> SafeTensors::Require(absl::string_view name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr) return absl::NotFoundError(absl::StrCat(path(), ": has no tensor \"", name, "\""));
  return entry;
}

absl::StatusOr<std::string> SafeTensors::ReadBytes(const Entry& entry) const {
  std::string bytes(static_cast<size_t>(entry.bytes), '\0');
  WEFT_RETURN_IF_ERROR(file_.ReadAt(entry.offset, bytes.data(), entry.bytes));
  return bytes;
}

absl::StatusOr<std::vector<double>> SafeTensors::ReadAsDouble(absl::string_view name) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Require(name));
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(*entry));
  return Convert<double>(absl::StrCat(path(), ": tensor \"", name, "\""), *entry, bytes);
}

absl::StatusOr<std::vector<float>> SafeTensors::ReadFloat(absl::string_view name) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Require(name));
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(*entry));
  return Convert<float>(absl::StrCat(path(), ": tensor \"", name, "\""), *entry, bytes);
}

absl::StatusOr<std::vector<int64_t>> SafeTensors::ReadInt64(absl::string_view name) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Require(name));
  const std::string where = absl::StrCat(path(), ": tensor \"", name, "\"");
  if (IsFloat(entry->dtype)) {
    return absl::FailedPreconditionError(absl::StrCat(where, ": dtype ", entry->dtype, " is not an integer type"));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(*entry));
  return Convert<int64_t>(where, *entry, bytes);
}

absl::Status SafeTensors::ReadInto(absl::string_view name, const Tensor& tensor) const {
  WEFT_ASSIGN_OR_RETURN(const Entry* entry, Require(name));
  if (absl::MakeConstSpan(entry->shape) != tensor.shape().dims()) {
    return absl::FailedPreconditionError(absl::StrCat(path(), ": tensor \"", name, "\" has shape ", ShapeString(entry->shape),
                                                      ", needed is ", tensor.shape().ToString()));
  }
  if (tensor.dtype() == DType::kF64) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<double> values, ReadAsDouble(name));
    std::copy(values.begin(), values.end(), tensor.data<double>());
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<float> values, ReadFloat(name));
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return absl::OkStatus();
}

absl::Status WriteSafeTensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return DTypeSize(a->value.dtype()) > DTypeSize(b->value.dtype());
  });
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadata] = metadata;
  std::vector<absl::string_view> pieces(2);  // length and header come first
  std::set<absl::string_view> names;
  int64_t end = 0;
  for (const NamedTensor* named : order) {
    const Tensor& tensor = named->value;
    if (named->name.empty() || named->name == kMetadata || !names.insert(named->name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor name \"", named->name, "\" is empty, reserved or repeated"));
    }
    const absl::Span<const int64_t> dims = tensor.shape().dims();
    json[named->name] = {{"dtype", std::string(FileDType(tensor.dtype()))},
                         {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                         {"data_offsets", std::vector<int64_t>{end, end + tensor.bytes()}}};
    pieces.emplace_back(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
    end += tensor.bytes();
  }
  std::string header;
  try {
    header = json.dump();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a name is not valid UTF-8: ", error.what()));
  }
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t length = header.size();
  pieces[0] = {reinterpret_cast<const char*>(&length), sizeof(length)};
  pieces[1] = header;
  return AtomicWrite(path, pieces);
}

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // A NaN whose payload lies in the lower half must not become infinity.
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const int exponent = (bits >> 10) & 31;
  const uint32_t fraction = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (fraction << 13));
  // A normal number is (1024 + fraction) 2^(exponent - 25), a subnormal one fraction 2^-24.
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | sign);
}

}  // namespace weft
