// Fields: how a config struct says which keys it has, once, for everyone: the config loader, the printer, `weft layers` and the
// docs. A struct writes one function
//
//   void Fields(FieldVisitor& v) {
//     v.Visit("hidden", hidden, {.min = 1}, "width of the hidden layer");
//     v.Choice("activation", activation, {"relu", "gelu"}, "the non-linearity");
//   }
//
// and a visitor reads into it (OptionsReader), or takes its values out (OptionsWriter). Options is the neutral form between a
// file format and structs: an ordered list of key -> value with the place each value came from. Not thread-safe; plain values.
#ifndef WEFT_AUTOGRAD_BASE_FIELDS_H_
#define WEFT_AUTOGRAD_BASE_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

struct Option;

// A value of a config: a scalar, a list or a table.
struct OptionValue {
  using List = std::vector<OptionValue>;
  using Table = std::vector<Option>;
  std::variant<bool, int64_t, double, std::string, List, Table> value;
  std::string where;  // "file:line:column", "--set KEY", or empty

  // "1e-4 (a float)", for messages.
  std::string Describe() const;
};

struct Option {
  std::string key;
  OptionValue value;
  std::string where;  // of the key; empty: that of the value
};

// An ordered table with look-up by key.
class Options {
 public:
  Options() = default;
  Options(std::initializer_list<std::pair<absl::string_view, OptionValue>> entries);
  explicit Options(OptionValue::Table entries) : entries_(std::move(entries)) {}

  // Null when absent; valid until the next change.
  const OptionValue* Find(absl::string_view key) const;
  // Replaces or appends. The key's place is the value's.
  void Set(absl::string_view key, OptionValue value);
  // True if there was such a key.
  bool Remove(absl::string_view key);
  const OptionValue::Table& entries() const& { return entries_; }
  OptionValue::Table entries() && { return std::move(entries_); }  // for (... : MakeOptions().entries()) is safe
  std::string where;                                               // of the table itself

 private:
  OptionValue::Table entries_;
};

// Allowed values of a number. NaN and infinities are always refused.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;  // min itself is refused
  bool max_open = false;
};

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void Visit(absl::string_view name, bool& field, absl::string_view doc) = 0;
  virtual void Visit(absl::string_view name, int64_t& field, const Range& range, absl::string_view doc) = 0;
  virtual void Visit(absl::string_view name, double& field, const Range& range, absl::string_view doc) = 0;
  virtual void Visit(absl::string_view name, std::string& field, absl::string_view doc) = 0;
  // A word out of a list.
  virtual void Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
                      absl::string_view doc) = 0;
  void Choice(absl::string_view name, std::string& field, std::initializer_list<absl::string_view> allowed,
              absl::string_view doc) {
    Choice(name, field, absl::MakeConstSpan(allowed.begin(), allowed.size()), doc);
  }
  // Lists of words and of numbers.
  virtual void Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) = 0;
  // A list of words that is written as a string where it has one: "a" is ["a"], and "" the empty list.
  virtual void OneOrMore(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) = 0;
  virtual void Visit(absl::string_view name, std::vector<double>& field, const Range& range, absl::string_view doc) = 0;
};

// Reads a table into structs. Errors are collected, not returned one by one: call Finish once all structs of the table have
// been visited. Types are strict: an integer is accepted for a float, nothing else is converted.
class OptionsReader : public FieldVisitor {
 public:
  // `table` names the table in messages ("model"); `defaults` (may be null) answers for keys that `options` lacks: how a
  // sublayer inherits keys of [model]. Both must outlive the reader.
  OptionsReader(absl::string_view table, const Options& options, const Options* defaults = nullptr);

  void Visit(absl::string_view name, bool& field, absl::string_view doc) override;
  void Visit(absl::string_view name, int64_t& field, const Range& range, absl::string_view doc) override;
  void Visit(absl::string_view name, double& field, const Range& range, absl::string_view doc) override;
  void Visit(absl::string_view name, std::string& field, absl::string_view doc) override;
  void Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
              absl::string_view doc) override;
  void Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) override;
  void OneOrMore(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) override;
  void Visit(absl::string_view name, std::vector<double>& field, const Range& range, absl::string_view doc) override;

  // A key that the caller reads by himself (a nested table): known from now on. Null when absent.
  const OptionValue* Take(absl::string_view name);
  // Records an error of the caller's about `name`, with its place.
  void Error(absl::string_view name, absl::string_view message);
  // Whether `name` was given in `options` itself.
  bool Has(absl::string_view name) const { return options_.Find(name) != nullptr; }
  // Whether it was given on the command line.
  bool FromCommandLine(absl::string_view name) const;

  // All errors so far, plus one for every key of `options` that nobody asked for, with the nearest known key. Messages are
  // "where: table.key: found X, allowed Y". Call it once.
  std::vector<std::string> Finish();

 private:
  const OptionValue* Look(absl::string_view name);
  void Mismatch(absl::string_view name, const OptionValue& value, absl::string_view allowed);
  void ReadWords(absl::string_view name, const OptionValue& value, absl::string_view allowed, std::vector<std::string>* field);
  template <class T>
  void CheckRange(absl::string_view name, const OptionValue& value, T number, const Range& range, T& field);

  std::string table_;
  const Options& options_;
  const Options* defaults_;
  std::vector<std::string> known_;
  std::vector<std::string> errors_;
};

// Takes the values of structs out, in the order of their Fields.
class OptionsWriter : public FieldVisitor {
 public:
  void Visit(absl::string_view name, bool& field, absl::string_view doc) override;
  void Visit(absl::string_view name, int64_t& field, const Range& range, absl::string_view doc) override;
  void Visit(absl::string_view name, double& field, const Range& range, absl::string_view doc) override;
  void Visit(absl::string_view name, std::string& field, absl::string_view doc) override;
  void Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
              absl::string_view doc) override;
  void Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) override;
  void OneOrMore(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) override;
  void Visit(absl::string_view name, std::vector<double>& field, const Range& range, absl::string_view doc) override;

  Options options;
};

// Describes fields for people: one entry per key.
struct FieldDescription {
  std::string name, type, default_value, allowed, doc;
};
class FieldDescriber : public FieldVisitor {
 public:
  void Visit(absl::string_view name, bool& field, absl::string_view doc) override;
  void Visit(absl::string_view name, int64_t& field, const Range& range, absl::string_view doc) override;
  void Visit(absl::string_view name, double& field, const Range& range, absl::string_view doc) override;
  void Visit(absl::string_view name, std::string& field, absl::string_view doc) override;
  void Choice(absl::string_view name, std::string& field, absl::Span<const absl::string_view> allowed,
              absl::string_view doc) override;
  void Visit(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) override;
  void OneOrMore(absl::string_view name, std::vector<std::string>& field, absl::string_view doc) override;
  void Visit(absl::string_view name, std::vector<double>& field, const Range& range, absl::string_view doc) override;

  std::vector<FieldDescription> fields;
};

// How every message about a key begins: "where: table.key: "; `where` and `table` may be empty, and a `where` that names the
// key already ("--set table.key") is not followed by it again.
std::string KeyPrefix(absl::string_view where, absl::string_view table, absl::string_view key);
// The start of the error of an unknown key, which a hint may follow.
std::string UnknownKeyError(const Option& option, absl::string_view table);
// The candidate with the smallest edit distance to `word`, if near enough to be a slip; else empty.
std::string Nearest(absl::string_view word, absl::Span<const std::string> candidates);
// Shortest text that reads back to the same double, with a '.' or an exponent so that it stays a float.
std::string FormatDouble(double value);
// The errors as one InvalidArgument status, one a line; OK when empty.
absl::Status ErrorsToStatus(const std::vector<std::string>& errors);

}  // namespace weft

#endif  // WEFT_AUTOGRAD_BASE_FIELDS_H_
