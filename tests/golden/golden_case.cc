#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace weft::golden {

std::string Folder() {
  const char* folder = std::getenv("WEFT_GOLDEN_DIR");
  return folder != nullptr && *folder != '\0' ? folder : WEFT_GOLDEN_DEFAULT_DIR;
}

absl::StatusOr<std::vector<Case>> ReadIndex(const std::string& folder) {
  const std::string path = folder + "/index.json";
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(path + ": cannot be opened");
  const auto index = nlohmann::ordered_json::parse(in, nullptr, false);
  if (!index.is_object() || !index.contains("cases") || !index["cases"].is_object()) {
    return absl::DataLossError(path + ": no JSON object with \"cases\"");
  }
  std::vector<Case> cases;
  for (const auto& [name, entry] : index["cases"].items()) {
    Case c;
    c.name = name;
    for (const auto& [key, value] : entry.items()) {
      if (key == "kind" && value.is_string()) c.kind = value;
      if ((key == "note" || key == "settings") && value.is_string()) c.note = value;
      if (value.is_boolean()) c.switches[key] = value;
      if (value.is_number_integer()) c.integers[key] = value;
      if (value.is_number()) c.numbers[key] = value;
      if (value.is_array() && std::all_of(value.begin(), value.end(), [](const auto& v) { return v.is_number_integer(); })) {
        c.lists[key] = value.template get<std::vector<int64_t>>();
      }
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

absl::Status Case::Open(const std::string& folder) {
  auto file = SafeTensors::Open(absl::StrCat(folder, "/", name, ".safetensors"));
  if (!file.ok()) return file.status();
  file_ = std::make_shared<const SafeTensors>(*std::move(file));
  return absl::OkStatus();
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

DType Case::TypeOf(const std::string& tensor) const {
  const SafeTensors::Entry* entry = file_->Find(tensor);
  return entry != nullptr && entry->dtype == "F32" ? DType::kF32 : DType::kF64;
}

Values Case::Read(const std::string& tensor) const {
  auto values = file_->ReadAsDouble(tensor);
  if (!values.ok()) {
    ADD_FAILURE() << values.status();
    return {{0, 0, 0, 0}, {}};
  }
  return {file_->Find(tensor)->shape, *std::move(values)};
}

std::vector<int32_t> Case::ReadIds(const std::string& tensor) const {
  const Values values = Read(tensor);
  return std::vector<int32_t>(values.v.begin(), values.v.end());
}

double NumberAfter(const std::string& text, const std::string& word, double otherwise) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    // A whole word with a number behind it.
    const char* start = text.c_str() + at + word.size();
    char* end = nullptr;
    const double number = std::strtod(start, &end);
    if ((at == 0 || text[at - 1] == ' ') && *start == ' ' && end != start) return number;
  }
  return otherwise;
}

void ExpectNear(const std::string& what, const std::vector<double>& actual, const std::vector<double>& expected,
                double tolerance) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0, error = 0;
  size_t worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double e = std::abs(actual[i] - expected[i]);
    if (std::isnan(e) || e > error) {
      error = std::isnan(e) ? INFINITY : e;
      worst = i;
    }
  }
  const double scale = largest < 1e-12 ? 1e-3 : largest;
  EXPECT_LE(error, tolerance * scale) << what << ": at " << worst << " got " << (actual.empty() ? 0 : actual[worst])
                                      << ", expected " << (actual.empty() ? 0 : expected[worst]) << ", largest magnitude "
                                      << largest;
}

std::vector<Sequence> EndToEnd(const std::vector<int64_t>& lengths) {
  std::vector<Sequence> sequences;
  int32_t start = 0;
  for (int64_t length : lengths) {
    sequences.push_back({start, static_cast<int32_t>(length), 0, sequences.size()});
    start += static_cast<int32_t>(length);
  }
  return sequences;
}

std::vector<double> RealRows(const Values& padded, const std::vector<int64_t>& lengths) {
  const int64_t time = padded.dim(1), width = padded.dim(2);
  std::vector<double> rows;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto first = padded.v.begin() + static_cast<int64_t>(b) * time * width;
    rows.insert(rows.end(), first, first + lengths[b] * width);
  }
  return rows;
}

void ExpectZeroAtPadding(const std::string& what, const Values& padded, const std::vector<int64_t>& lengths) {
  const int64_t time = padded.dim(1), width = padded.dim(2);
  for (size_t b = 0; b < lengths.size(); ++b) {
    for (int64_t i = lengths[b] * width; i < time * width; ++i) {
      ASSERT_EQ(padded.v[static_cast<int64_t>(b) * time * width + i], 0)
          << what << " counts at padding: the case has another form";
    }
  }
}

std::vector<int64_t> LengthsOr(const Case& c, const std::string& field, int64_t batch, int64_t time) {
  const auto it = c.lists.find(field);
  if (it == c.lists.end()) return std::vector<int64_t>(batch, time);
  EXPECT_EQ(static_cast<int64_t>(it->second.size()), batch) << c.name << ": " << field;
  return it->second;
}

std::vector<double> ToDoubles(const Tensor& tensor) {
  std::vector<double> values(tensor.defined() ? tensor.elements() : 0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = tensor.At(static_cast<int64_t>(i));
  return values;
}

Variable InputOf(Tape* tape, DType type, const std::vector<double>& values, const Shape& shape) {
  const Tensor tensor = tape->Allocate(type, shape);
  EXPECT_EQ(static_cast<int64_t>(values.size()), shape.elements());
  for (size_t i = 0; i < values.size(); ++i) tensor.Set(static_cast<int64_t>(i), values[i]);
  return tape->Input(tensor);
}

void SetParameter(Parameters* parameters, const std::string& name, const std::vector<double>& values) {
  const int index = parameters->Find(name);
  ASSERT_GE(index, 0) << "the model has no parameter " << name;
  const Tensor value = Parameters::In(parameters->Mutable(), parameters->list()[index]);
  ASSERT_EQ(value.elements(), static_cast<int64_t>(values.size())) << name << " " << value.shape();
  for (int64_t i = 0; i < value.elements(); ++i) value.Set(i, values[i]);
}

std::vector<std::vector<double>> CutInThree(const Values& packed) {
  const auto third = static_cast<int64_t>(packed.v.size()) / 3;
  std::vector<std::vector<double>> parts;
  for (int64_t i = 0; i < 3; ++i) parts.emplace_back(packed.v.begin() + i * third, packed.v.begin() + (i + 1) * third);
  return parts;
}

}  // namespace weft::golden
